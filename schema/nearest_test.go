package schema

import (
	"strings"
	"testing"
)

func TestParseBytes(t *testing.T) {
	t.Parallel()
	valid := map[string]Bytes{
		"1": 1, "10b": 10, "1k": 1 << 10, "512m": 512 << 20, "8g": 8 << 30, "8G": 8 << 30, "8Gi": 8 << 30, "8GiB": 8 << 30, "8 GiB": 8 << 30,
		"8GB": 8e9, "1.5TiB": 3 << 39, "1.5kb": 1500, "0.5g": 1 << 29, "2p": 2 << 50, "7.9999999P": 9007199142151001,
	}
	for text, want := range valid {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "g", "0", "-1", "-1g", "1x", "1gg", "1/2g", "1e9", "0x10", "1_000", "8192p", "99999999999999999999", "1.2.3g", strings.Repeat("9", 1000), "١g"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		candidates []string
		want       string
	}{
		{"comand", []string{"command", "count"}, "command"},
		{"bacth", []string{"batch"}, "batch"},
		{"gpc", []string{"gcp", "local"}, "gcp"},
		{"zzz", []string{"gcp", "local"}, ""},
		{"job", nil, ""},
		{"jab", []string{"job", "jib"}, "jib"},
		{"c", []string{"a", "b"}, ""},
		{"cc", []string{"c"}, "c"},
		{"a", []string{"a"}, "a"},
	}
	for _, test := range tests {
		if got := Nearest(test.name, test.candidates); got != test.want {
			t.Errorf("Nearest(%q, %v) = %q, want %q", test.name, test.candidates, got, test.want)
		}
	}
	if got := editDistance("", "abc"); got != 3 {
		t.Errorf("editDistance of an empty word = %d, want 3", got)
	}
}
