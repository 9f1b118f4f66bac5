package change

import (
	"strconv"
	"strings"
)

// Dollars is "$1,234.50"; what is less than ten cents has more digits.
func Dollars(amount float64) string {
	digits := 2
	switch {
	case amount < 0.00005:
		return "$0"
	case amount < 0.1:
		digits = 4
	}
	text := strconv.FormatFloat(amount, 'f', digits, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return "$" + whole + "." + rest
}
