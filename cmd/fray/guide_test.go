package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// Every configuration that the guide to states shows is one that fray takes.
func TestStateGuideSnippets(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "state.md"))
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(snippets) < 2 {
		t.Fatalf("the guide has %d snippets", len(snippets))
	}
	for _, snippet := range snippets {
		dir := t.TempDir()
		writeConfig(t, dir, snippet[1])
		src, diags := schema.Parse([]string{dir})
		if diags.HasErrors() {
			t.Fatalf("%v in\n%s", diags, snippet[1])
		}
		cfg, diags := src.Evaluate(schema.Options{})
		if diags.HasErrors() {
			t.Fatalf("%v in\n%s", diags, snippet[1])
		}
		if err := policyOf(cfg.Settings.Encryption).Validate(); err != nil {
			t.Errorf("%v in\n%s", err, snippet[1])
		}
	}
}
