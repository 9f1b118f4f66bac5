package lang

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/lang/testfile"
)

func parseTest(t *testing.T, src string) (*testfile.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x"+load.TestEnding)
	if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	f, diags := testfile.Parse(path)
	var failures []string
	for _, d := range diags {
		failures = append(failures, d.Summary+": "+d.Detail)
	}
	return f, strings.Join(failures, "\n")
}

func TestParseTest(t *testing.T) {
	t.Parallel()
	f, diags := parseTest(t, `
		run "a" {
			command = plan
			expect_failures = [var.x, check.y, job.z["k"], module.m.job.j]
			plan_options {
				target  = [job.a]
				replace = [job.b[0], job_group.g.job.c]
			}
		}
		run "b" {
			wait    = "complete"
			timeout = "90s"
			module { source = "./other" }
		}
	`)
	if diags != "" {
		t.Fatal(diags)
	}
	a, b := f.Runs[0], f.Runs[1]
	var expected []string
	for _, x := range a.Expect {
		expected = append(expected, x.Name)
	}
	if want := []string{"var.x", "check.y", `job.z["k"]`, "module.m.job.j"}; !slices.Equal(expected, want) {
		t.Errorf("expected failures %q, want %q", expected, want)
	}
	if a.Apply || a.Wait != testfile.WaitReady || len(a.Targets) != 1 || len(a.Replace) != 2 || a.Replace[1].String() != "job_group.g.job.c" {
		t.Errorf("run a is %+v", a)
	}
	if !b.Apply || b.Wait != testfile.WaitComplete || b.Timeout.String() != "1m30s" || b.Module != "./other" {
		t.Errorf("run b is %+v", b)
	}
}

func TestParseTestMistakes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ src, want string }{
		"nothing":          {``, "has no run block"},
		"command":          {`run "a" { command = "plan" }`, "Write plan or apply, without quotes."},
		"misspelt":         {`run "a" { comand = plan }`, `Did you mean "command"?`},
		"other block":      {"run \"a\" {\nasert {}\n}", `Did you mean "assert"?`},
		"job":              {`job "a" {}`, `The test file has no block "job".`},
		"twice":            {"run \"a\" {}\nrun \"a\" {}", "run.a is declared at"},
		"wait":             {`run "a" { wait = "done" }`, `Write "ready" or "complete".`},
		"timeout":          {`run "a" { timeout = 10 }`, "Want a duration"},
		"timeout of a var": {`run "a" { timeout = var.x }`, "Write a constant"},
		"archive":          {"run \"a\" {\nmodule { source = \"gs://x\" }\n}", "starts with ./ or ../"},
		"expectation":      {`run "a" { expect_failures = [local.x] }`, "Name what has a condition"},
		"quoted":           {`run "a" { expect_failures = ["var.x"] }`, "without quotes"},
		"no list":          {`run "a" { expect_failures = var.x }`, "Write a list of references"},
		"target":           {"run \"a\" {\nplan_options { target = [var.x] }\n}", "Invalid value for target"},
		"override":         {"run \"a\" {\noverride_data {\ntarget = job.x\nvalues = {}\n}\n}", "Name a data block"},
		"assert":           {"run \"a\" {\nassert { condition = true }\n}", `needs the attribute "error_message"`},
	}
	for name, tt := range tests {
		if _, diags := parseTest(t, tt.src); !strings.Contains(diags, tt.want) {
			t.Errorf("%s: diagnostics %q, want %q", name, diags, tt.want)
		}
	}
}

const testedConfig = `
variable "n" { type = number }
variable "secret" {
	default   = "none"
	sensitive = true
}
data "outputs" "o" { path = "nowhere" }
data "reservation" "r" {}
locals {
	queue = data.outputs.o.values.queue
	slices = data.reservation.r.slices
	tpu   = data.reservation.r.tpu
}
job "a" {
	count   = var.n
	command = ["echo", local.queue, var.secret]
}
`

// assertAll evaluates the tested configuration for each run and returns the failures
// of its assertions.
func assertAll(t *testing.T, f *testfile.File, config string, runs map[string]cty.Value) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	src, diags := Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	failures := map[string]string{}
	for _, run := range f.Runs {
		given, diags := f.Values(run, src, runs)
		if !diags.HasErrors() {
			scope, more := src.Scope(given)
			if diags = more; scope.Config() != nil {
				spec := func() (cty.Value, error) { return SpecValues(&scope.Config().Desired), nil }
				diags = run.Assert(scope.With(map[string]eval.Late{"spec": spec}))
			}
		}
		for _, d := range diags {
			failures[run.Name] += d.Summary + ": " + d.Detail + "\n"
		}
	}
	return failures
}

func TestAssert(t *testing.T) {
	t.Parallel()
	const overrides = `
		override_data {
			target = data.outputs.o
			values = { queue = "q" }
		}
		override_data {
			target = data.reservation.r
			values = { tpu = "v4-8", slices = ["s"] }
		}
		variables { n = 2 }
	`
	assert := func(condition string) string {
		return "assert {\ncondition = " + condition + "\nerror_message = \"no: ${var.n}\"\n}\n"
	}
	tests := map[string]struct {
		run  string // what stands in it
		want string // "": it holds
	}{
		"holds":           {run: assert(`length(job.a) == 2 && local.queue == "q" && local.tpu == "v4-8" && local.slices[0] == "s"`)},
		"spec":            {run: assert(`spec["job.a[1]"].command[0] == "echo" && spec["job.a[0]"].health_check == null && spec["job.a[0]"].stop_grace == "10s"`)},
		"fails":           {assert(`length(job.a) == 3`), "Test assertion failed: no: 2\n\nLeft side: 2\nRight side: 3"},
		"part that fails": {assert(`(length(job.a) == 2 && length(job.a) > 2) && true`), "Left side: 2\nRight side: 2"},
		"secret":          {assert(`spec["job.a[0]"].command[2] == "x"`), "Left side: (sensitive value)\nRight side: \"x\""},
		"no comparison":   {assert(`contains([1], var.n)`), "Test assertion failed: no: 2\n"},
		"unknown":         {assert(`job.a[0].address == "x"`), "Unknown condition: "},
		"not a bool":      {assert(`"x"`), "Want a condition that is true or false"},
		"mistake":         {assert(`var.m == 1`), `There is no variable "m"`},
		"both":            {assert(`var.m == 1`) + assert(`var.n == 3`), "no: 2"},
		"over the file's": {run: "variables { n = var.n + 1 }\n" + assert(`var.n == 3`)},
		"from a run":      {run: "variables { secret = run.earlier.token }\n" + assert(`var.n == 2`)},
		"undeclared":      {"variables { m = 1 }\n", `The configuration has no variable "m". There are n, secret.`},
		"wrong type":      {"variables { n = \"x\" }\n", "Invalid value for var.n: "},
		"wrong target":    {"override_data {\ntarget = data.outputs.p\nvalues = {}\n}\n", "There is no data.outputs.p to override"},
		"wrong attribute": {"override_data {\ntarget = data.reservation.r\nvalues = { tpus = 1 }\n}\n", `Did you mean "tpu"?`},
		"no map":          {"override_data {\ntarget = data.reservation.r\nvalues = 1\n}\n", "Want a map"},
		"wrong run":       {"variables { n = run.nosuch.x }\n", "Unsupported attribute"},
	}
	src, names := overrides, slices.Sorted(maps.Keys(tests))
	for _, name := range names {
		src += "run \"" + strings.NewReplacer(" ", "_", "'", "").Replace(name) + "\" {\n" + tests[name].run + "}\n"
	}
	f, diags := parseTest(t, src)
	if diags != "" {
		t.Fatal(diags)
	}
	failures := assertAll(t, f, testedConfig, map[string]cty.Value{
		"earlier": cty.ObjectVal(map[string]cty.Value{"token": cty.StringVal("hunter2").Mark(mark.Sensitive{})}),
	})
	for i, name := range names {
		got, want := failures[f.Runs[i].Name], tests[name].want
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: reveals a secret: %s", name, got)
		}
	}
}

// TestSharedVariables: a value of the file that no variable takes is a mistake,
// but for runs of another configuration, which take what is theirs.
func TestSharedVariables(t *testing.T) {
	t.Parallel()
	f, diags := parseTest(t, `
		variables {
			n     = 1
			other = 2
		}
		run "own" {}
		run "another" { 
			module { source = "./other" }
		}
	`)
	if diags != "" {
		t.Fatal(diags)
	}
	failures := assertAll(t, f, `variable "n" {}`, nil)
	if want := `The configuration has no variable "other".`; !strings.Contains(failures["own"], want) {
		t.Errorf("the own configuration: got %q, want %q", failures["own"], want)
	}
	if failures["another"] != "" {
		t.Errorf("another configuration: got %q", failures["another"])
	}
}

// TestNoTestsInConfiguration: files of tests are no part of what they stand beside.
func TestNoTestsInConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.hcl": scopeConfig, "x" + load.TestEnding: `run "a" {}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	src, diags := Parse([]string{dir})
	if diags.HasErrors() || len(src.Files()) != 1 {
		t.Errorf("read %d files: %v", len(src.Files()), diags)
	}
}

func TestExpectedCovers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expected, of string
		want         bool
	}{
		{"var.x", "var.x", true},
		{"var.x", "var.xy", false},
		{"job.a", "job.a[3]", true},
		{"job.a[3]", "job.a[2]", false},
		{"job.a", "module.m.job.a", false},
		{"module.m.job.a", "module.m.job.a[0]", true},
		{"check.a", "job.a", false},
	}
	for _, tt := range tests {
		if got := (testfile.Expected{Name: tt.expected}).Covers(tt.of); got != tt.want {
			t.Errorf("%s covers %s: %v, want %v", tt.expected, tt.of, got, tt.want)
		}
	}
}
