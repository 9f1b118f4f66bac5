package as

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/schema"
)

// Converter turns a known, not sensitive, not null value into what the specs
// hold. Its error has what to write instead.
type Converter[T any] func(cty.Value) (T, error)

// String converts a string.
func String(v cty.Value) (string, error) {
	if v.Type() != cty.String {
		return "", fmt.Errorf("want a string in quotes, this is %s", diagnose.Friendly(v))
	}
	return v.AsString(), nil
}

// NotEmpty converts a string that has a character at least.
func NotEmpty(v cty.Value) (string, error) {
	s, err := String(v)
	if err == nil && s == "" {
		return "", errors.New("it must not be empty; leave the attribute out instead")
	}
	return s, err
}

// Bool converts a bool.
func Bool(v cty.Value) (bool, error) {
	b, err := convert.Convert(v, cty.Bool)
	if err != nil || b.IsNull() {
		return false, fmt.Errorf("want true or false, this is %s", diagnose.Friendly(v))
	}
	return b.True(), nil
}

// WholeNumber converts whole numbers from low to high.
func WholeNumber(low, high int) Converter[int] {
	return func(v cty.Value) (int, error) {
		n, err := Float(v)
		if err != nil {
			return 0, fmt.Errorf("want a whole number, this is %s", diagnose.Friendly(v))
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

// Float converts a number.
func Float(v cty.Value) (*big.Float, error) {
	n, err := convert.Convert(v, cty.Number)
	if err != nil {
		return nil, err
	}
	if n.IsNull() {
		return nil, errors.New("null is no number")
	}
	return n.AsBigFloat(), nil
}

// Cores converts a number of cores, which may be a fraction.
func Cores(v cty.Value) (float64, error) {
	n, err := Float(v)
	if err != nil {
		return 0, fmt.Errorf("want a number of cores such as 4 or 0.5, this is %s", diagnose.Friendly(v))
	}
	f, _ := n.Float64()
	if f <= 0 || f > 1e6 {
		return 0, fmt.Errorf("want a number of cores above zero, this is %s", n.Text('g', 10))
	}
	return f, nil
}

// Duration converts a duration of zero or more, which has a unit.
func Duration(v cty.Value) (schema.Duration, error) {
	s, err := String(v)
	if err != nil {
		return 0, fmt.Errorf("want a duration with a unit, such as \"30s\" or \"1h30m\", this is %s", diagnose.Friendly(v))
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: write a number with a unit, such as \"30s\" or \"1h30m\"; the units are ms, s, m, h", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("want a duration of zero or more, this is %q", s)
	}
	return schema.Duration(d), nil
}

// PositiveDuration converts a duration above zero.
func PositiveDuration(v cty.Value) (schema.Duration, error) {
	d, err := Duration(v)
	if err == nil && d == 0 {
		return 0, errors.New("want a duration above zero")
	}
	return d, err
}

// Bytes converts a size: a number of bytes, or a string with a unit.
func Bytes(v cty.Value) (schema.Bytes, error) {
	if v.Type() == cty.Number {
		n, err := WholeNumber(1, math.MaxInt)(v)
		return schema.Bytes(n), err
	}
	s, err := String(v)
	if err != nil {
		return 0, fmt.Errorf("want a size such as \"512m\", \"8g\" or \"1.5TiB\", this is %s", diagnose.Friendly(v))
	}
	return schema.ParseBytes(s)
}

// StringList converts a list of strings.
func StringList(v cty.Value) ([]string, error) {
	if !v.Type().IsListType() && !v.Type().IsTupleType() && !v.Type().IsSetType() {
		return nil, fmt.Errorf("want a list of strings such as [\"a\", \"b\"], this is %s", diagnose.Friendly(v))
	}
	list := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		if item.IsNull() || item.Type() != cty.String {
			return nil, fmt.Errorf("want a list of strings, element %d is %s", len(list), diagnose.Friendly(item))
		}
		list = append(list, item.AsString())
	}
	return list, nil
}

// StringMap converts a map of strings.
func StringMap(v cty.Value) (map[string]string, error) {
	if !v.Type().IsMapType() && !v.Type().IsObjectType() {
		return nil, fmt.Errorf("want a map such as { team = \"rl\" }, this is %s", diagnose.Friendly(v))
	}
	m := make(map[string]string, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, item := it.Element()
		s, err := convert.Convert(item, cty.String)
		if err != nil || s.IsNull() {
			return nil, fmt.Errorf("want a map of strings, %q is %s", k.AsString(), diagnose.Friendly(item))
		}
		m[k.AsString()] = s.AsString()
	}
	return m, nil
}

// LimitMap converts a map of whole numbers from 1 on.
func LimitMap(v cty.Value) (map[string]int, error) {
	if !v.Type().IsMapType() && !v.Type().IsObjectType() {
		return nil, fmt.Errorf("want a map such as { io = 4 }, this is %s", diagnose.Friendly(v))
	}
	m := make(map[string]int, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		k, item := it.Element()
		if k.AsString() == "" {
			return nil, errors.New("want names as keys, one is empty")
		}
		n, err := WholeNumber(1, math.MaxInt32)(item)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", k.AsString(), err)
		}
		m[k.AsString()] = n
	}
	return m, nil
}

// PortList converts a list of names, or a map from names to fixed numbers, in
// the order of the source; a map's is by name.
func PortList(v cty.Value) ([]schema.Port, error) {
	var ports []schema.Port
	if v.Type().IsMapType() || v.Type().IsObjectType() {
		for it := v.ElementIterator(); it.Next(); {
			k, item := it.Element()
			n, err := WholeNumber(0, math.MaxUint16)(item)
			if item.IsNull() || err != nil {
				return nil, fmt.Errorf("port %q: want a number from 0 (any free one) to 65535", k.AsString())
			}
			ports = append(ports, schema.Port{Name: k.AsString(), Number: n})
		}
	} else {
		names, err := StringList(v)
		if err != nil {
			return nil, fmt.Errorf("want a list of names such as [\"http\"], or a map such as { http = 8080 }: %w", err)
		}
		for _, name := range names {
			ports = append(ports, schema.Port{Name: name})
		}
	}
	numbers := map[int]string{}
	for i, p := range ports {
		if !schema.ValidName(p.Name) {
			return nil, fmt.Errorf("%q cannot name a port: a name is a letter or underscore, then letters, digits, underscores and hyphens", p.Name)
		}
		if slices.ContainsFunc(ports[:i], func(q schema.Port) bool { return q.Name == p.Name }) {
			return nil, fmt.Errorf("the port %q stands twice", p.Name)
		}
		if other := numbers[p.Number]; other != "" && p.Number != 0 {
			return nil, fmt.Errorf("the ports %q and %q have the same number %d", other, p.Name, p.Number)
		}
		numbers[p.Number] = p.Name
	}
	return ports, nil
}

// PortName converts the name of a port, or its number, to text.
func PortName(v cty.Value) (string, error) {
	if v.Type() == cty.Number {
		n, err := WholeNumber(1, math.MaxUint16)(v)
		return strconv.Itoa(n), err
	}
	return NotEmpty(v)
}

// OneOf converts a name of a closed set.
func OneOf[T ~string](names ...T) Converter[T] {
	return func(v cty.Value) (T, error) {
		s, err := String(v)
		if err != nil {
			return "", err
		}
		if slices.Contains(names, T(s)) {
			return T(s), nil
		}
		candidates := make([]string, 0, len(names))
		for _, name := range names {
			candidates = append(candidates, string(name))
		}
		return "", fmt.Errorf("there is no %q here. %s", s, diagnose.DidYouMean(s, candidates))
	}
}

// IsPlainString reports whether a value is a string to be read as it is.
func IsPlainString(v cty.Value) bool {
	return v.Type() == cty.String && v.IsKnown() && !v.IsMarked() && !v.IsNull()
}
