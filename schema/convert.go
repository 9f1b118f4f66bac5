package schema

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A converter turns a known, not sensitive, not null value into what the specs
// hold. Its error says what to write instead.
type converter[T any] func(cty.Value) (T, error)

func asString(v cty.Value) (string, error) {
	if v.Type() != cty.String {
		return "", fmt.Errorf("want a string in quotes, this is %s", friendly(v))
	}
	return v.AsString(), nil
}

func notEmpty(v cty.Value) (string, error) {
	s, err := asString(v)
	if err == nil && s == "" {
		return "", errors.New("it must not be empty; leave the attribute out instead")
	}
	return s, err
}

func asBool(v cty.Value) (bool, error) {
	b, err := convert.Convert(v, cty.Bool)
	if err != nil || b.IsNull() {
		return false, fmt.Errorf("want true or false, this is %s", friendly(v))
	}
	return b.True(), nil
}

// wholeNumber converts whole numbers from low to high.
func wholeNumber(low, high int) converter[int] {
	return func(v cty.Value) (int, error) {
		n, err := asFloat(v)
		if err != nil {
			return 0, fmt.Errorf("want a whole number, this is %s", friendly(v))
		}
		i, accuracy := n.Int64()
		switch {
		case !n.IsInt() || accuracy != big.Exact:
			return 0, fmt.Errorf("want a whole number, this is %s", n.Text('g', 10))
		case i < int64(low):
			return 0, fmt.Errorf("want %d or more, this is %d", low, i)
		case i > int64(high):
			return 0, fmt.Errorf("want %d or less, this is %d", high, i)
		}
		return int(i), nil
	}
}

func asFloat(v cty.Value) (*big.Float, error) {
	n, err := convert.Convert(v, cty.Number)
	if err != nil {
		return nil, err
	}
	if n.IsNull() {
		return nil, errors.New("null is no number")
	}
	return n.AsBigFloat(), nil
}

// asCores converts a number of cores, which may be a fraction.
func asCores(v cty.Value) (float64, error) {
	n, err := asFloat(v)
	if err != nil {
		return 0, fmt.Errorf("want a number of cores such as 4 or 0.5, this is %s", friendly(v))
	}
	f, _ := n.Float64()
	if f <= 0 || f > 1e6 {
		return 0, fmt.Errorf("want a number of cores above zero, this is %s", n.Text('g', 10))
	}
	return f, nil
}

func asDuration(v cty.Value) (Duration, error) {
	s, err := asString(v)
	if err != nil {
		return 0, fmt.Errorf("want a duration with a unit, such as \"30s\" or \"1h30m\", this is %s", friendly(v))
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: write a number with a unit, such as \"30s\" or \"1h30m\"; the units are ms, s, m, h", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("want a duration of zero or more, this is %q", s)
	}
	return Duration(d), nil
}

func positiveDuration(v cty.Value) (Duration, error) {
	d, err := asDuration(v)
	if err == nil && d == 0 {
		return 0, errors.New("want a duration above zero")
	}
	return d, err
}

func asBytes(v cty.Value) (Bytes, error) {
	if v.Type() == cty.Number {
		n, err := wholeNumber(1, math.MaxInt)(v)
		return Bytes(n), err
	}
	s, err := asString(v)
	if err != nil {
		return 0, fmt.Errorf("want a size such as \"512m\", \"8g\" or \"1.5TiB\", this is %s", friendly(v))
	}
	return ParseBytes(s)
}

// ParseBytes reads a size: a number with an optional unit in any case. A single
// letter and the IEC units count in 1024 ("8g" is "8Gi" is "8GiB"), the SI
// units in 1000 ("8GB").
func ParseBytes(s string) (Bytes, error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.ToLower(strings.TrimSpace(s[len(digits):]))
	factor, ok := sizeUnit(unit)
	number, valid := new(big.Rat).SetString(digits)
	if !ok || !valid || len(digits) > 30 || strings.ContainsAny(digits, "eE/_xXpP") {
		return 0, fmt.Errorf("%q is no size: write a number with a unit, such as \"512m\", \"8g\" or \"1.5TiB\"", s)
	}
	number.Mul(number, new(big.Rat).SetInt64(factor))
	size := new(big.Int).Quo(number.Num(), number.Denom())
	if !size.IsInt64() || size.Sign() <= 0 {
		return 0, fmt.Errorf("%q is out of range: a size is at least one byte and less than 8 EiB", s)
	}
	return Bytes(size.Int64()), nil
}

func sizeUnit(unit string) (factor int64, ok bool) {
	if unit == "" || unit == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgtp", unit[0]) + 1
	if power == 0 {
		return 0, false
	}
	base := int64(1024)
	switch unit[1:] {
	case "", "i", "ib":
	case "b":
		base = 1000
	default:
		return 0, false
	}
	factor = 1
	for range power {
		factor *= base
	}
	return factor, true
}

// stringList converts a list of strings.
func stringList(v cty.Value) ([]string, error) {
	if !v.Type().IsListType() && !v.Type().IsTupleType() && !v.Type().IsSetType() {
		return nil, fmt.Errorf("want a list of strings such as [\"a\", \"b\"], this is %s", friendly(v))
	}
	list := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		if item.IsNull() || item.Type() != cty.String {
			return nil, fmt.Errorf("want a list of strings, element %d is %s", len(list), friendly(item))
		}
		list = append(list, item.AsString())
	}
	return list, nil
}

func stringMap(v cty.Value) (map[string]string, error) {
	if !v.Type().IsMapType() && !v.Type().IsObjectType() {
		return nil, fmt.Errorf("want a map such as { team = \"rl\" }, this is %s", friendly(v))
	}
	m := make(map[string]string, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, item := it.Element()
		s, err := convert.Convert(item, cty.String)
		if err != nil || s.IsNull() {
			return nil, fmt.Errorf("want a map of strings, %q is %s", k.AsString(), friendly(item))
		}
		m[k.AsString()] = s.AsString()
	}
	return m, nil
}

// portList converts a list of names, or a map from names to fixed numbers, in
// the order of the source; a map's is by name.
func portList(v cty.Value) ([]Port, error) {
	var ports []Port
	if v.Type().IsMapType() || v.Type().IsObjectType() {
		for it := v.ElementIterator(); it.Next(); {
			k, item := it.Element()
			n, err := wholeNumber(0, math.MaxUint16)(item)
			if item.IsNull() || err != nil {
				return nil, fmt.Errorf("port %q: want a number from 0 (any free one) to 65535", k.AsString())
			}
			ports = append(ports, Port{Name: k.AsString(), Number: n})
		}
	} else {
		names, err := stringList(v)
		if err != nil {
			return nil, fmt.Errorf("want a list of names such as [\"http\"], or a map such as { http = 8080 }: %w", err)
		}
		for _, name := range names {
			ports = append(ports, Port{Name: name})
		}
	}
	numbers := map[int]string{}
	for i, p := range ports {
		if !ValidName(p.Name) {
			return nil, fmt.Errorf("%q cannot name a port: a name is a letter or underscore, then letters, digits, underscores and hyphens", p.Name)
		}
		if slices.ContainsFunc(ports[:i], func(q Port) bool { return q.Name == p.Name }) {
			return nil, fmt.Errorf("the port %q stands twice", p.Name)
		}
		if other := numbers[p.Number]; other != "" && p.Number != 0 {
			return nil, fmt.Errorf("the ports %q and %q have the same number %d", other, p.Name, p.Number)
		}
		numbers[p.Number] = p.Name
	}
	return ports, nil
}

// portName converts the name of a port, or its number, to text.
func portName(v cty.Value) (string, error) {
	if v.Type() == cty.Number {
		n, err := wholeNumber(1, math.MaxUint16)(v)
		return strconv.Itoa(n), err
	}
	return notEmpty(v)
}

// oneOf converts a word of a closed vocabulary.
func oneOf[T ~string](words ...T) converter[T] {
	return func(v cty.Value) (T, error) {
		s, err := asString(v)
		if err != nil {
			return "", err
		}
		if slices.Contains(words, T(s)) {
			return T(s), nil
		}
		names := make([]string, 0, len(words))
		for _, w := range words {
			names = append(names, string(w))
		}
		return "", fmt.Errorf("there is no %q here. %s", s, didYouMean(s, names))
	}
}

// friendly describes a value in words, without showing what is in it.
func friendly(v cty.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case v.Type() == cty.String:
		return "a string"
	case v.Type() == cty.Number:
		return "a number"
	case v.Type() == cty.Bool:
		return "a bool"
	case v.Type().IsTupleType():
		return "a list"
	}
	return article(v.Type().FriendlyName())
}

// sentence makes an error's text one.
func sentence(s string) string {
	s = capitalized(s)
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}
