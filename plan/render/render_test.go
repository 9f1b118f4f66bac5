package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func meta() render.Meta {
	return render.Meta{
		FrayVersion: "0.1.0", Lineage: "5c1f2d9e7a30", Serial: 41, Revision: 7, Applicable: true,
		Time: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC),
	}
}

// rendered returns one of the renderings that a golden file may hold.
func rendered(t *testing.T, name string, p *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch name {
	case "text":
		err = render.Text(&b, p, render.Options{})
	case "verbose":
		err = render.Text(&b, p, render.Options{Verbose: true, Width: 100})
	case "color":
		err = render.Text(&b, p, render.Options{Color: true})
	case "json":
		err = render.JSON(&b, p, meta())
	default:
		t.Fatalf("no rendering is called %q", name)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.ReplaceAll(b.String(), "\x1b", "␛")
}

func readPlan(t *testing.T, archive *txtar.Archive) *plan.Plan {
	t.Helper()
	if len(archive.Files) < 2 || archive.Files[0].Name != "plan.json" {
		t.Fatal("want plan.json and at least one rendering")
	}
	var p plan.Plan
	if err := json.Unmarshal(archive.Files[0].Data, &p); err != nil {
		t.Fatalf("plan.json: %v", err)
	}
	return &p
}

func TestGolden(t *testing.T) {
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
			p := readPlan(t, archive)
			for i := 1; i < len(archive.Files); i++ {
				f := &archive.Files[i]
				got := rendered(t, f.Name, p)
				if *update {
					f.Data = []byte(got)
				} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("%s (-want +got), rewrite with -update:\n%s", f.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
