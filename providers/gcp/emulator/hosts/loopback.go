package hosts

import "net/netip"

// loopback is the address of this machine that stands for one of the emulated
// network, the same for everybody who asks: 10.128.0.2 is at 127.128.0.2.
func loopback(address string) string {
	a, err := netip.ParseAddr(address)
	switch {
	case err != nil || !a.Is4() || !ownLoopback:
		return "127.0.0.1"
	case a.IsLoopback():
		return address
	}
	b := a.As4()
	b[0] = 127
	if b[1] == 0 { // people's own services are at 127.0.0.0/16
		b[1] = 1
	}
	return netip.AddrFrom4(b).String()
}
