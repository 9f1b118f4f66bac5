package lang

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	s := parseText(t, `fray {
		required_version = "~> 0.1"
		state "local" { path = "../elsewhere" }
	}`)
	c, diags := s.Evaluate(eval.Options{Version: "0.1.7"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := schema.Settings{RequiredVersion: "~> 0.1", Backend: schema.Backend{Kind: schema.BackendLocal, Path: filepath.Join(filepath.Dir(s.Dir()), "elsewhere")}}
	if diff := cmp.Diff(want, c.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	c = mustEvaluate(t, `fray {; state "gcs" { bucket = "b" }; }`, eval.Options{Local: true})
	if want := (schema.Backend{Kind: schema.BackendLocal, Path: filepath.Join(c.Dir, ".fray")}); c.Settings.Backend != want {
		t.Errorf("backend with Local = %+v, want %+v", c.Settings.Backend, want)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "main.hcl"), []byte(`job "a" {
  count   = 2
  command = ["x"]
  resources {
    ports = ["http"]
  }
  environment {
    project = "."
    uv {
      extras = []
    }
  }
}
job_group "g" {
  same_zone = true
  job "b" {
    command = ["x"]
  }
}
`))
	writeFile(t, filepath.Join(dir, "uv.lock"), nil)
	writeFile(t, filepath.Join(dir, "pyproject.toml"), nil)
	s, _ := Parse([]string{dir})
	c, diags := s.Evaluate(eval.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for key, line := range map[string]int{
		"job.a": 1, "job.a#count": 2, "job.a#command": 3, "job.a#resources": 4, "job.a#resources.ports": 5,
		"job.a#environment.project": 8, "job.a#environment.uv": 9, "job.a#environment.uv.extras": 10,
		"job_group.g": 14, "job_group.g#same_zone": 15, "job_group.g.job.b": 16, "job_group.g.job.b#command": 17,
	} {
		if got := c.Ranges[key]; got.Start.Line != line || got.Filename != filepath.Join(dir, "main.hcl") {
			t.Errorf("Ranges[%q] = %v, want line %d", key, got, line)
		}
	}
	if rng, ok := c.Ranges["job_group.g#job"]; ok {
		t.Errorf("the jobs of a group have a range %v as an attribute", rng)
	}
	for _, j := range c.Desired.Jobs {
		if c.Ranges[j.Addr.Base().String()] == (hcl.Range{}) {
			t.Errorf("%s has no range", j.Addr.Base())
		}
	}
}
