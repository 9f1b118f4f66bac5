package lang

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/show"
	"github.com/fray-ml/fray/schema"
)

func scopeOf(t *testing.T, src string, opts eval.Options) (*eval.Scope, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	parsed, diags := Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	scope, diags := parsed.Scope(opts)
	return scope, diags.Error()
}

// ask is what console prints for an expression: its value, or its first error.
func ask(sc *eval.Scope, src string) string {
	expr, diags := sc.Parse(src, "<input>")
	if diags.HasErrors() {
		return "error: " + diags[0].Detail
	}
	val, diags := sc.Eval(expr)
	if diags.HasErrors() {
		return "error: " + diags[0].Detail
	}
	return show.Value(val)
}

const scopeConfig = `
variable "n" { default = 2 }
variable "token" {
	default   = "hunter2"
	sensitive = true
}
locals { twice = var.n * 2 }
data "outputs" "other" { path = "x" }
job "a" {
	count   = var.n
	command = ["true"]
}
job_group "g" {
	job "b" { command = ["true"] }
}
output "first" { value = job.a[0].address }
output "secret" {
	value     = "hunter2"
	sensitive = true
}
`

func TestScope(t *testing.T) {
	t.Parallel()
	scope, _ := scopeOf(t, scopeConfig, eval.Options{
		Computed:  map[schema.Address]schema.Computed{{Kind: schema.KindJob, Name: "a", Key: schema.IntKey(0)}: {Addresses: []string{"10.0.0.1"}, Status: schema.JobRunning}},
		Workspace: "w",
	})
	tests := map[string]string{
		`local.twice + 1`:                 `5`,
		`length(job.a)`:                   `2`,
		`job.a[0].address`:                `"10.0.0.1"`,
		`job.a[1].address`:                `(known after apply)`,
		`output.first`:                    `"10.0.0.1"`,
		`output.secret`:                   `(sensitive value)`,
		`"x${var.token}"`:                 `(sensitive value)`,
		`fray.workspace`:                  `"w"`,
		`job_group.g.job.b.name`:          `"b"`,
		`data.outputs.other.values`:       `(known after apply)`,
		`[for j in job.a : j.status][0]`:  `"running"`,
		`var.m`:                           `error: There is no variable "m". There are n, token.`,
		`count.index`:                     `error: count.index stands only in a job that has count, and in an actor_service, where it is the replica's number.`,
		`output.nosuch`:                   `error: This object does not have an attribute named "nosuch". There are first, secret.`,
		`parseint(var.token, 10)`:         `error: The reason is not shown, because a sensitive value is part of this expression. Try it with a value that is no secret.`,
		`can(nosuch())`:                   `false`,
		`[for output in [1] : output][0]`: `1`,
	}
	for src, want := range tests {
		if got := ask(scope, src); got != want {
			t.Errorf("%s = %s, want %s", src, got, want)
		}
	}
	again, _ := (&Source{scope.Session.Source}).Evaluate(eval.Options{})
	if scope.Config() == nil || again == nil || len(scope.Config().Desired.Jobs) != len(again.Desired.Jobs) {
		t.Errorf("the Scope has another configuration than Evaluate: %v", scope.Config())
	}
}

// TestScopeKeepsNothing: an expression that fails says nothing of the next.
func TestScopeKeepsNothing(t *testing.T) {
	t.Parallel()
	scope, _ := scopeOf(t, scopeConfig, eval.Options{})
	first := ask(scope, "var.m")
	if got := ask(scope, "var.n"); got != "2" {
		t.Errorf("after an error, var.n = %s", got)
	}
	if got := ask(scope, "var.m"); got != first {
		t.Errorf("asked again: %s, want %s", got, first)
	}
}

func TestScopeWith(t *testing.T) {
	t.Parallel()
	scope, _ := scopeOf(t, scopeConfig, eval.Options{})
	called := 0
	more := scope.With(map[string]eval.Late{
		"plan": func() (cty.Value, error) { called++; return cty.ObjectVal(map[string]cty.Value{"x": cty.True}), nil },
		"logs": func() (cty.Value, error) { return cty.NilVal, errors.New("there are no logs") },
	})
	if got := ask(more, "var.n"); got != "2" || called != 0 {
		t.Errorf("var.n = %s, and plan was made %d times; want 2 and none", got, called)
	}
	if got := ask(more, "plan.x && local.twice == 4"); got != "true" {
		t.Errorf("plan.x = %s, want true", got)
	}
	if got, want := ask(more, "logs.x"), "error: There are no logs."; got != want {
		t.Errorf("logs.x = %s, want %s", got, want)
	}
	if got := ask(scope, "plan.x"); !strings.HasPrefix(got, "error: There is nothing named") {
		t.Errorf("With changed the Scope itself: plan.x = %s", got)
	}
}

// TestScopeWithErrors: what is not wrong has its value.
func TestScopeWithErrors(t *testing.T) {
	t.Parallel()
	scope, diags := scopeOf(t, `
		locals {
			right = 1
			wrong = nothing.there
			after = local.wrong
		}
		output "o" { value = local.after }
	`, eval.Options{})
	if !strings.Contains(diags, "Unknown name") || scope.Config() != nil {
		t.Errorf("diagnostics %s, configuration %v", diags, scope.Config())
	}
	for src, want := range map[string]string{
		"local.right": "1",
		"local.wrong": "error: local.wrong has no value, because there are errors in the configuration.",
		"local.after": "error: local.after has no value, because there are errors in the configuration.",
		"output":      "{}",
	} {
		if got := ask(scope, src); got != want {
			t.Errorf("%s = %s, want %s", src, got, want)
		}
	}
	other, diags := scopeOf(t, `fray { required_version = ">= 9" }`+scopeConfig, eval.Options{Version: "1.0.0"})
	if !strings.Contains(diags, "Another version") {
		t.Errorf("diagnostics %s", diags)
	}
	if got := ask(other, `upper("x")`); got != `"X"` {
		t.Errorf(`upper("x") = %s`, got)
	}
}

// FuzzScope: whatever is typed ends in a value that can be shown, or in an error
// that says something, and never shows a secret.
func FuzzScope(f *testing.F) {
	for _, src := range []string{"var.n", "job.a[*].address", "{ for k, v in local : k => v }", "output.secret", "<<EOT\n${var.token}\nEOT\n", "type(1)", "[", "\"${"} {
		f.Add(src)
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(scopeConfig), 0o644); err != nil {
		f.Fatal(err)
	}
	parsed, diags := Parse([]string{dir})
	if diags.HasErrors() {
		f.Fatal(diags)
	}
	scope, _ := parsed.Scope(eval.Options{})
	f.Fuzz(func(t *testing.T, src string) {
		got := ask(scope, src)
		if got == "" || got == "error: " {
			t.Errorf("%q says nothing", src)
		}
		if strings.Contains(got, "hunter2") && !strings.Contains(src, "hunter2") {
			t.Errorf("%q shows a secret: %s", src, got)
		}
	})
}
