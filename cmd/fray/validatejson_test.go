package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// formatDoc is a page that describes a JSON format, with an example.
type formatDoc struct {
	path string
	text []byte
}

func readFormatDoc(t *testing.T, name string) formatDoc {
	t.Helper()
	path := filepath.Join("..", "..", "docs", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return formatDoc{path, text}
}

// block is the page's first fenced block of a language.
func (d formatDoc) block(t *testing.T, language string) string {
	t.Helper()
	for _, block := range fence.FindAllSubmatch(d.text, -1) {
		if string(block[1]) == language {
			return string(block[2])
		}
	}
	t.Fatalf("%s has no ```%s block", d.path, language)
	return ""
}

// check holds the page's example against what is written, and its tables
// against the example's fields; values names the fields whose content is not
// the format's but the user's, or is described with another field.
func (d formatDoc) check(t *testing.T, written []byte, values ...string) {
	t.Helper()
	if *update {
		example := regexp.MustCompile("(?s)```json\n.*?```")
		d.text = example.ReplaceAllLiteral(d.text, slices.Concat([]byte("```json\n"), written, []byte("```")))
		if err := os.WriteFile(d.path, d.text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(written), d.block(t, "json")); diff != "" {
		t.Errorf("example in %s (-code +doc), rewrite with -update:\n%s", d.path, diff)
	}
	var example any
	if err := json.Unmarshal(written, &example); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	fieldsOf(found, "", example, values)
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllSubmatch(d.text, -1) {
		documented[string(m[1])] = true
	}
	want, got := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(documented))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-written +documented):\n%s", diff)
	}
}

func fieldsOf(found map[string]bool, path string, v any, values []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			fieldsOf(found, path+"[]", item, values)
		}
	case map[string]any:
		for key, value := range v {
			name := strings.TrimPrefix(path+"."+key, ".")
			found[name] = true
			if !slices.Contains(values, name) {
				fieldsOf(found, name, value, values)
			}
		}
	}
}

func TestValidateJSONDoc(t *testing.T) {
	needsFray(t)
	doc := readFormatDoc(t, "validate-json.md")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.hcl"), []byte(doc.block(t, "hcl")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), fray, "validate", "--json", "--var", "token=hunter2")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 1 || stderr.Len() > 0 {
		t.Fatalf("got %v, and on standard error %q", err, stderr.String())
	}
	doc.check(t, out, "diagnostics[].range.end")
}
