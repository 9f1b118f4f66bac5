package format

import (
	"bytes"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzFormat: formatting never fails on what parses, keeps every token but
// those it modernizes, is what the library's formatter makes of it, and leaves
// as it is what it has formatted.
func FuzzFormat(f *testing.F) {
	addArchives(f)
	for _, src := range formatCorpus(f) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		checkFormat(t, src)
		if !bytes.Equal(before, src) {
			t.Fatal("the source was written to")
		}
	})
}

// addArchives seeds a fuzz target with the files of the diagnostics' archives.
func addArchives(f *testing.F) {
	f.Helper()
	archives, err := filepath.Glob("../testdata/diagnostics/*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if filepath.Ext(file.Name) == ".hcl" {
				f.Add(file.Data)
			}
		}
	}
}
