package lang

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"golang.org/x/tools/txtar"

	"github.com/fray-ml/fray/lang/eval"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestDiagnostics evaluates the files of each archive and compares what is
// printed with its last file, "want". The comment before the files holds
// options, one on a line: "paths a b", "local", "version V", "var NAME=VALUE",
// "varfile FILE", "env NAME=VALUE"; a line that starts with # explains.
func TestDiagnostics(t *testing.T) {
	archives, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := diagnose(t, archive)
			want := &archive.Files[len(archive.Files)-1]
			if want.Name != "want" {
				t.Fatalf("%s: the last file is %q, not want", path, want.Name)
			}
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

// diagnose writes out an archive, evaluates it and renders the diagnostics.
func diagnose(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files[:len(archive.Files)-1] {
		writeFile(t, filepath.Join(dir, f.Name), f.Data)
	}
	t.Chdir(dir)
	paths, opts := archiveOptions(t, string(archive.Comment))
	source, diags := Parse(paths)
	if !diags.HasErrors() {
		config, more := source.Evaluate(opts)
		diags = append(diags, more...)
		if (config == nil) != diags.HasErrors() {
			t.Errorf("config is nil: %v, errors: %v", config == nil, diags.HasErrors())
		}
	}
	var out bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&out, source.Files(), 0, false).WriteDiagnostics(diags); err != nil {
		t.Fatal(err)
	}
	if out.Len() == 0 {
		return "no diagnostics\n"
	}
	return strings.ReplaceAll(out.String(), dir, "$DIR")
}

func archiveOptions(t *testing.T, comment string) (paths []string, opts eval.Options) {
	t.Helper()
	for line := range strings.Lines(comment) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case key == "" || strings.HasPrefix(key, "#"):
		case key == "paths":
			paths = strings.Fields(rest)
		case key == "local":
			opts.Local = true
		case key == "emulated":
			opts.Emulated = true
		case key == "validate":
			opts.Partial = true
		case key == "version":
			opts.Version = rest
		case key == "var":
			opts.Given = append(opts.Given, eval.Given{Kind: eval.GivenVar, Text: rest})
		case key == "varfile":
			opts.Given = append(opts.Given, eval.Given{Kind: eval.GivenVarFile, Text: rest})
		case key == "env":
			opts.Environ = append(opts.Environ, rest)
		default:
			t.Fatalf("unknown option %q", line)
		}
	}
	return paths, opts
}

func writeFile(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		tb.Fatal(err)
	}
}
