package status

import (
	"strings"
	"unicode"
)

// clean is a text without what would move the cursor or colour the screen:
// reasons may quote what programs printed.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
