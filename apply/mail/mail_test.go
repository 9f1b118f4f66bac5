package mail

import (
	"strings"
	"testing"
)

func TestStatusLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " a\tb\n": "a b", "\xff!": "?!",
		strings.Repeat("é", maxStatus):   strings.Repeat("é", maxStatus),
		strings.Repeat("é", 9*maxStatus): strings.Repeat("é", maxStatus) + "…",
	} {
		if got := StatusLine([]byte(text)); got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}
