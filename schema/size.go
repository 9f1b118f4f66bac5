package schema

import (
	"fmt"
	"math/big"
	"strings"
)

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
