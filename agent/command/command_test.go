package command

import (
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	for _, test := range []struct {
		output string
		want   string
	}{{"", ""}, {"a", "a"}, {"a\nb\nc\n", "b|c"}, {"\n\n", ""}, {"a\n\nb", "|b"}} {
		if got := strings.Join(LastLines(test.output, 2), "|"); got != test.want {
			t.Errorf("last lines of %q are %q, want %q", test.output, got, test.want)
		}
	}
}
