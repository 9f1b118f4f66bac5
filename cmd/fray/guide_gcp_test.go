package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/rehearse"
)

// snippets are the blocks of HCL that a guide shows.
func snippets(t *testing.T, guide string, atLeast int) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", guide))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, block := range regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		found = append(found, block[1])
	}
	if len(found) < atLeast {
		t.Fatalf("the guide %s has %d snippets, want %d at least", guide, len(found), atLeast)
	}
	return found
}

// Every configuration that the guide to Google Cloud shows is one that fray takes,
// with the provider block of the first where it has none.
func TestGCPGuideSnippets(t *testing.T) {
	shown := snippets(t, "gcp.md", 2)
	whole := regexp.MustCompile(`(?s)fray \{.*?\n\}|provider "gcp" \{.*?\n\}`).FindAllString(shown[0], -1)
	for _, snippet := range shown {
		if !strings.Contains(snippet, `provider "gcp"`) {
			snippet = strings.Join(whole, "\n\n") + "\n\n" + snippet
		}
		dir := t.TempDir()
		writeConfig(t, dir, snippet)
		src, diags := lang.Parse([]string{dir})
		if !diags.HasErrors() {
			_, diags = src.Evaluate(eval.Options{})
		}
		if diags.HasErrors() {
			t.Errorf("%v in\n%s", diags, snippet)
		}
	}
}

// Every scenario that the guides show is one that rehearsals take.
func TestScenarioGuideSnippets(t *testing.T) {
	for _, text := range append(snippets(t, "rehearsal.md", 1), snippets(t, "scenario.md", 3)...) {
		path := filepath.Join(t.TempDir(), "scenario.hcl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := rehearse.Load(path); err != nil {
			t.Errorf("rehearse: %v in\n%s", err, text)
		}
		if _, diags := cloud.ParseScenario([]byte(text), path); diags.HasErrors() {
			t.Errorf("emulate: %v in\n%s", diags, text)
		}
	}
}
