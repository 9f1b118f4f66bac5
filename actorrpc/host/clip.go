package host

import "unicode/utf8"

const maxNameShown = 200 // bytes of a name that a peer sent, in a message

// clip shortens a text to so many bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
