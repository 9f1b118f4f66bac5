package mark

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// Names are those of the service's own patterns.
func TestNamesAsTheServiceHasThem(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	stack := regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)
	zone := regexp.MustCompile(`^[a-z]{1,63}(-[a-z0-9]{1,63})+$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[a-z0-9_-]{0,4}`), rapid.StringMatching(`[a-z][a-z0-9-]{60,63}`), rapid.StringMatching(`[a-z]{1,3}(-[a-z0-9]{0,3}){0,3}[A-Z\n]?`),
		).Draw(t, "text")
		if got, want := isName(text), name.MatchString(text); got != want {
			t.Errorf("%q is a name: %t, want %t", text, got, want)
		}
		if got, want := consistsOf(text, letters+digits+"-_"), stack.MatchString(text); got != want {
			t.Errorf("%q is a stack: %t, want %t", text, got, want)
		}
		if got, want := isZone(text), zone.MatchString(text); got != want {
			t.Errorf("%q is a zone: %t, want %t", text, got, want)
		}
	})
}
