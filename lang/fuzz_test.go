package lang

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/tools/txtar"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// addCorpus seeds a fuzz target with every file of the diagnostics' archives.
func addCorpus(f *testing.F) {
	f.Helper()
	archives, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		if name := filepath.Base(path); name == "sizes.txtar" || name == "module-count.txtar" {
			continue // slow by intent, and so is what is made of them
		}
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
		writeFile(t, filepath.Join(dir, "m", "main.hcl"), []byte(flowModule))
		s, diags := Parse([]string{dir})
		if diags.HasErrors() {
			return
		}
		for _, local := range []bool{false, true} {
			config, diags := s.evaluate(eval.Options{Local: local, Data: fakeReader{}}, 1000)
			if (config == nil) != diags.HasErrors() {
				t.Fatalf("config is nil: %v, diagnostics: %v", config == nil, diags)
			}
			for _, d := range diags {
				if d.Summary == "" || d.Detail == "" || d.Subject == nil || d.Subject.Filename == path && d.Subject.End.Byte > len(src) {
					t.Fatalf("a diagnostic has no text: %+v", d)
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

// fakeReader has one stack with an output and a reservation.
type fakeReader struct{}

var _ eval.Reader = fakeReader{}

func (fakeReader) Outputs(eval.StackRef) (map[string]eval.DataOutput, error) {
	return map[string]eval.DataOutput{"plain": {JSON: []byte(`"p"`)}, "secret": {JSON: []byte(`{"k":"secret"}`), Sensitive: true}}, nil
}

func (fakeReader) Reservation(_ eval.StackRef, name string) (eval.ReservationData, error) {
	if name != "pool" {
		return eval.ReservationData{}, errors.New("there is no reservation " + name + " there")
	}
	return eval.ReservationData{Provider: schema.ProviderLocal, Shape: schema.Capacity{CPU: 1, Slices: 2}, Max: 3, Slices: []string{"a", "b"}, Allocated: 1}, nil
}

func (fakeReader) Accelerators(q accelerators.Query) ([]accelerators.Offer, error) {
	return accelerators.Offers(q), nil
}
