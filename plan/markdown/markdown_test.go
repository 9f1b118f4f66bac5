package markdown_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fray-ml/fray/plan/markdown"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// example reads the input of a golden file.
func example(t *testing.T, archive *txtar.Archive) markdown.Input {
	t.Helper()
	if len(archive.Files) != 2 || archive.Files[0].Name != "input.json" || archive.Files[1].Name != "review.md" {
		t.Fatal("want input.json and review.md")
	}
	var in markdown.Input
	if err := json.Unmarshal(archive.Files[0].Data, &in); err != nil {
		t.Fatalf("input.json: %v", err)
	}
	return in
}

// examples are the inputs of all golden files by name.
func examples(t *testing.T, each func(t *testing.T, file string, archive *txtar.Archive)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("golden files: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			each(t, file, archive)
		})
	}
}

func TestGolden(t *testing.T) {
	examples(t, func(t *testing.T, file string, archive *txtar.Archive) {
		t.Helper()
		got := markdown.Render(example(t, archive), markdown.Limit{})
		if *update {
			archive.Files[1].Data = []byte(got)
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
			t.Errorf("(-want +got), rewrite with -update:\n%s", diff)
		}
	})
}
