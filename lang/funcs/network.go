package funcs

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

func networkFunctions() []libraryFunction {
	prefix := "prefix: such as 10.0.0.0/8"
	return []libraryFunction{
		{
			name: "cidrcontains", text: "Whether a network contains an address or another network.", returns: "bool", fn: cidrContainsFunc(),
			params: []string{"containing_prefix: such as 10.0.0.0/8", "contained_ip_or_prefix: such as 10.1.2.3 or 10.1.0.0/16"}, example: `cidrcontains("10.0.0.0/8", "10.1.2.3")`,
		},
		{
			name: "cidrhost", text: "The address of a host in a network.", returns: "string", fn: cidrHostFunc(),
			params: []string{prefix, "hostnum: counted from the end if negative"}, example: `cidrhost("10.12.112.0/20", 16)`,
		},
		{
			name: "cidrnetmask", text: "The mask of an IPv4 network.", returns: "string", fn: stringFunc(netmask),
			params: []string{prefix}, example: `cidrnetmask("172.16.0.0/12")`,
		},
		{
			name: "cidrsubnet", text: "One of the networks into which a network can be split.", returns: "string", fn: cidrSubnetFunc(),
			params: []string{prefix, "newbits: by how many bits the new prefix is longer", "netnum: which of them, from 0"}, example: `cidrsubnet("10.1.2.0/24", 4, 15)`,
		},
		{
			name: "cidrsubnets", text: "Networks of several sizes, one after the other, within a network.", returns: "list(string)", fn: cidrSubnetsFunc(),
			params: []string{prefix, "newbits: by how many bits each new prefix is longer"}, example: `cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)`,
		},
	}
}

// network is a prefix with its first address as a number.
type network struct {
	netip.Prefix
	first *big.Int
}

func parseNetwork(s string) (network, error) {
	p, err := netip.ParsePrefix(withoutZeros(s))
	if err != nil {
		return network{}, fmt.Errorf("%q is no network, such as 10.0.0.0/8", s)
	}
	p = p.Masked()
	return network{Prefix: p, first: new(big.Int).SetBytes(p.Addr().AsSlice())}, nil
}

// withoutZeros is a network without the zeros at the start of its numbers: Terraform
// accepts 010.0.0.0/08, and takes it for 10.0.0.0/8.
func withoutZeros(s string) string {
	const digits = "0123456789abcdefABCDEF"
	var out strings.Builder
	for i, start := 0, true; i < len(s); i++ {
		digit := strings.IndexByte(digits, s[i]) >= 0
		more := i+1 < len(s) && strings.IndexByte(digits, s[i+1]) >= 0
		if start && s[i] == '0' && more {
			continue
		}
		start = !digit
		out.WriteByte(s[i])
	}
	return out.String()
}

// size is the number of addresses in a prefix of that many bits.
func (n network) size(bits int) *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(n.Addr().BitLen()-bits))
}

// address is the network's address with that number.
func (n network) address(i *big.Int) netip.Addr {
	raw := make([]byte, n.Addr().BitLen()/8)
	addr, _ := netip.AddrFromSlice(i.FillBytes(raw))
	return addr
}

// longer checks the length of a prefix within the network.
func (n network) longer(newbits int) (int, error) {
	bits := n.Bits() + newbits
	if newbits < 0 || newbits > 128 || bits > n.Addr().BitLen() {
		return 0, fmt.Errorf("a prefix of %d bits cannot be extended by %d", n.Bits(), newbits)
	}
	return bits, nil
}

func netmask(s string) (string, error) {
	n, err := parseNetwork(s)
	if err != nil {
		return "", err
	}
	if !n.Addr().Is4() {
		return "", errors.New("only IPv4 networks have a mask")
	}
	return net.IP(net.CIDRMask(n.Bits(), 32)).String(), nil
}

// wholeArgument reads an argument that must be a whole number.
func wholeArgument(args []cty.Value, i int) (int, error) {
	var n int
	if err := gocty.FromCtyValue(args[i], &n); err != nil {
		return 0, function.NewArgError(i, err)
	}
	return n, nil
}

func cidrHostFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.Number}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := parseNetwork(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			host, accuracy := args[1].AsBigFloat().Int(nil)
			if host == nil || accuracy != big.Exact {
				return cty.NilVal, function.NewArgErrorf(1, "want a whole number")
			}
			size := n.size(n.Bits())
			index := new(big.Int).Set(host)
			if host.Sign() < 0 {
				index.Add(index, size)
			}
			if index.Sign() < 0 || index.Cmp(size) >= 0 {
				return cty.NilVal, function.NewArgErrorf(1, "the network %s has no host %s", n, host)
			}
			return cty.StringVal(n.address(index.Add(index, n.first)).String()), nil
		},
	})
}

func cidrSubnetFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.Number}, {Type: cty.Number}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := parseNetwork(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			newbits, err := wholeArgument(args, 1)
			if err != nil {
				return cty.NilVal, err
			}
			bits, err := n.longer(newbits)
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			index, accuracy := args[2].AsBigFloat().Int(nil)
			if index == nil || accuracy != big.Exact || index.Sign() < 0 || index.BitLen() > newbits {
				return cty.NilVal, function.NewArgErrorf(2, "%d more bits make no network %s", newbits, args[2].AsBigFloat().Text('f', -1))
			}
			index.Mul(index, n.size(bits))
			return cty.StringVal(netip.PrefixFrom(n.address(index.Add(index, n.first)), bits).String()), nil
		},
	})
}

func cidrSubnetsFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}},
		VarParam:     &function.Parameter{Type: cty.Number},
		Type:         function.StaticReturnType(cty.List(cty.String)),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := parseNetwork(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			next, end := new(big.Int).Set(n.first), new(big.Int).Add(n.first, n.size(n.Bits()))
			subnets := []cty.Value{}
			for i := 1; i < len(args); i++ {
				newbits, err := wholeArgument(args, i)
				if err != nil {
					return cty.NilVal, err
				}
				bits, err := n.longer(newbits)
				if err != nil || newbits < 1 || newbits > 32 {
					return cty.NilVal, function.NewArgErrorf(i, "a prefix of %d bits cannot be extended by %d; want 1 to %d",
						n.Bits(), newbits, min(32, n.Addr().BitLen()-n.Bits()))
				}
				size := n.size(bits)
				if rest := new(big.Int).Mod(next, size); rest.Sign() > 0 {
					next.Add(next, size).Sub(next, rest)
				}
				if new(big.Int).Add(next, size).Cmp(end) > 0 {
					return cty.NilVal, function.NewArgErrorf(i, "no room is left in %s for a prefix of %d bits", n, bits)
				}
				subnets = append(subnets, cty.StringVal(netip.PrefixFrom(n.address(next), bits).String()))
				next.Add(next, size)
			}
			if len(subnets) == 0 {
				return cty.ListValEmpty(cty.String), nil
			}
			return cty.ListVal(subnets), nil
		},
	})
}

func cidrContainsFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			outer, err := parseNetwork(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			inner, err := netip.ParsePrefix(withoutZeros(args[1].AsString()))
			if err != nil {
				addr, err := netip.ParseAddr(withoutZeros(args[1].AsString()))
				if err != nil {
					return cty.NilVal, function.NewArgErrorf(1, "%q is neither an address nor a network", args[1].AsString())
				}
				inner = netip.PrefixFrom(addr, addr.BitLen())
			}
			if inner.Addr().BitLen() != outer.Addr().BitLen() {
				return cty.NilVal, function.NewArgErrorf(1, "one is of IPv4, the other of IPv6")
			}
			return cty.BoolVal(inner.Bits() >= outer.Bits() && outer.Contains(inner.Addr())), nil
		},
	})
}
