package forge

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine is a text of another program as one line of at most some characters, without
// control characters.
func OneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
