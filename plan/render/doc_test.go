package render_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

const docFile = "../../docs/plan-json.md"

var (
	docExample = regexp.MustCompile("(?s)```json\n(.*?)```")
	docField   = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|")
)

func readDoc(t *testing.T) []byte {
	t.Helper()
	doc, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func fullExample(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/all.txtar")
	if err != nil {
		t.Fatal(err)
	}
	return rendered(t, "json", readPlan(t, archive))
}

func TestDocShowsWhatIsWritten(t *testing.T) {
	doc, want := readDoc(t), fullExample(t)
	if *update {
		block := []byte("```json\n" + want + "```")
		doc = docExample.ReplaceAllLiteral(doc, block)
		if err := os.WriteFile(docFile, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found := docExample.FindSubmatch(doc)
	if found == nil {
		t.Fatalf("%s has no ```json block", docFile)
	}
	if diff := cmp.Diff(want, string(found[1])); diff != "" {
		t.Errorf("example in %s (-code +doc), rewrite with -update:\n%s", docFile, diff)
	}
}

// TestDocNamesEveryField compares the fields of the full example with the first
// columns of the doc's tables, both ways.
func TestDocNamesEveryField(t *testing.T) {
	var example any
	if err := json.Unmarshal([]byte(fullExample(t)), &example); err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	collectFields(written, "", example)
	documented := map[string]bool{}
	for _, m := range docField.FindAllStringSubmatch(string(readDoc(t)), -1) {
		documented[m[1]] = true
	}
	got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(written))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-written +documented):\n%s", diff)
	}
}

func collectFields(fields map[string]bool, path string, v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			collectFields(fields, path+"[]", item)
		}
	case map[string]any:
		for key, value := range v {
			name := strings.TrimPrefix(path+"."+key, ".")
			fields[name] = true
			if !isValue(name) {
				collectFields(fields, name, value)
			}
		}
	}
}

// isValue reports whether what is below a field is the user's, or described
// with another field.
func isValue(name string) bool {
	return strings.HasPrefix(name, "changes[].attributes[].before") || strings.HasPrefix(name, "changes[].attributes[].after") ||
		name == "capacity[].before" || name == "capacity[].limit" || name == "costs[].before"
}

// TestJSONStandsOnLines holds what the doc says of grep.
func TestJSONStandsOnLines(t *testing.T) {
	n := 0
	for line := range bytes.SplitSeq([]byte(fullExample(t)), []byte("\n")) {
		if element, ok := bytes.CutPrefix(line, []byte("    {")); ok {
			n++
			if !json.Valid([]byte("{" + strings.TrimSuffix(string(element), ","))) {
				t.Errorf("line is no element of its own: %s", line)
			}
		}
	}
	if n != 28 {
		t.Errorf("got %d elements, want 28", n)
	}
}
