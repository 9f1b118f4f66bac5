package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"golang.org/x/tools/txtar"
)

// addCorpus seeds a fuzz target with every file of the diagnostics' archives.
func addCorpus(f *testing.F) {
	f.Helper()
	archives, err := filepath.Glob("testdata/diagnostics/*.txtar")
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
	f.Add([]byte(secrets))
	f.Add([]byte(references))
}

// FuzzEvaluate: whatever a file holds, evaluation ends, with a configuration or
// with errors, all of which point into the file.
func FuzzEvaluate(f *testing.F) {
	addCorpus(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "main.hcl")
		if err := os.WriteFile(path, src, 0o600); err != nil {
			t.Fatal(err)
		}
		s, diags := Parse([]string{dir})
		if diags.HasErrors() {
			return
		}
		for _, local := range []bool{false, true} {
			config, diags := s.evaluate(Options{Local: local}, 1000)
			if (config == nil) != diags.HasErrors() {
				t.Fatalf("config is nil: %v, diagnostics: %v", config == nil, diags)
			}
			for _, d := range diags {
				if d.Summary == "" || d.Detail == "" || d.Subject == nil || d.Subject.Filename != path || d.Subject.End.Byte > len(src) {
					t.Fatalf("a diagnostic says too little: %+v", d)
				}
			}
			var out bytes.Buffer
			if err := hcl.NewDiagnosticTextWriter(&out, s.Files(), 80, false).WriteDiagnostics(diags); err != nil {
				t.Fatal(err)
			}
			if config == nil {
				continue
			}
			if _, err := config.Desired.Seal(reversing{}); err != nil {
				t.Fatal(err)
			}
			for _, j := range config.Desired.Jobs {
				if len(j.Command) == 0 || j.Namespace == "" || j.Resources.Slices < 1 || j.Resources.Provider == "" {
					t.Fatalf("an incomplete job got through: %+v", j)
				}
			}
		}
	})
}

// FuzzFormat: the formatted text has the tokens of the source, and is left as
// it is by formatting it again.
func FuzzFormat(f *testing.F) {
	addCorpus(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		once, diags := Format(src, "x.hcl")
		if diags.HasErrors() {
			if !bytes.Equal(once, src) {
				t.Fatalf("what does not parse was changed to %q", once)
			}
			return
		}
		if got, want := significant(once), significant(src); !bytes.Equal(got, want) {
			t.Fatalf("tokens changed\nfrom %q\nto   %q", want, got)
		}
		if _, diags := Format(once, "x.hcl"); diags.HasErrors() {
			t.Fatalf("what was formatted does not parse: %v\n%q", diags, once)
		}
	})
}

// significant is the text of all tokens but the spaces between them.
func significant(src []byte) []byte {
	tokens, _ := hclsyntax.LexConfig(src, "x.hcl", hcl.InitialPos)
	var out []byte
	for _, token := range tokens {
		out = append(out, bytes.TrimSpace(token.Bytes)...)
		out = append(out, 0)
	}
	return out
}
