package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestN101_EveryKeyOfTheGuideHasItsPlace finds each key of the guide, with the values that it names, among the keys.
func TestN101_EveryKeyOfTheGuideHasItsPlace(t *testing.T) {
	text, err := os.ReadFile("testdata/guide_keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	root := tree()
	found := 0
	for line := range strings.Lines(string(text)) {
		path, words, _ := strings.Cut(strings.TrimSpace(line), " = ")
		if path == "" || strings.HasPrefix(path, "#") {
			continue
		}
		at := root
		for name := range strings.SplitSeq(path, ".") {
			if at = at.children[name]; at == nil {
				t.Errorf("the guide has the key %s, and Keys has not", path)
				break
			}
		}
		if at == nil {
			continue
		}
		found++
		for word := range strings.FieldsSeq(words) {
			if at.key == nil || !slices.Contains(at.key.Words, word) {
				t.Errorf("the guide has the value %q of %s, and Keys has not", word, path)
			}
		}
	}
	if found != 64 {
		t.Errorf("found %d keys of the guide, want 64", found)
	}
}

const guide = "../../docs/guides/nexrl.md"

// TestN101_TheTableOfTheGuideHasEveryKey holds the table of docs/guides/nexrl.md to the keys.
func TestN101_TheTableOfTheGuideHasEveryKey(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash(guide))
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- keys -->\n", "<!-- end of keys -->\n"
	before, rest, ok := strings.Cut(string(page), begin)
	got, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has no table between %q and %q", guide, begin, end)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(guide), []byte(before+begin+table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		got = table()
	}
	if diff := cmp.Diff(table(), got); diff != "" {
		t.Errorf("the table is not as the keys say; run go test ./rl/config -update (-want +got):\n%s", diff)
	}
}

// table is the keys as a table of Markdown.
func table() string {
	var out strings.Builder
	out.WriteString("| key | type | default | meaning | in the module |\n|---|---|---|---|---|\n")
	for _, key := range Keys() {
		path := strings.ReplaceAll(key.Path, "*", "ROLE")
		first, rest, nested := strings.Cut(path, ".")
		place := first
		if nested {
			place = first + " = { " + strings.ReplaceAll(rest, ".", " = { ") + " = … " + strings.Repeat("}", strings.Count(rest, ".")) + "}"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | `%s` |\n", path, key.Type(), defaultOf(key), key.Meaning, place)
	}
	return out.String()
}

func defaultOf(key Key) string {
	if key.Default == nil {
		return ""
	}
	if text, ok := key.Default.(string); ok {
		return text
	}
	text, err := json.Marshal(key.Default)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
