package incremental

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// openSealer keeps secrets in clear; nothing of these plans is kept.
type openSealer struct{}

func (openSealer) Seal(secret string) (string, error) { return secret, nil }
func (openSealer) Open(sealed string) (string, error) { return sealed, nil }

// TestLanguageSnippetsArePlanned makes a plan of every example of the language's
// document: all that it declares is to be created, and what cannot be placed
// says why.
func TestLanguageSnippetsArePlanned(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	planned := 0
	for _, s := range regexp.MustCompile("(?s)```hcl([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		kind, name, _ := strings.Cut(strings.TrimSpace(s[1]), " ")
		switch kind {
		case "fragment":
			continue
		case "":
			name = "main.hcl"
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s[2]), 0o644); err != nil {
			t.Fatal(err)
		}
		if kind != "" {
			continue
		}
		planned++
		source, diags := lang.Parse([]string{dir})
		config, more := source.Evaluate(eval.Options{Local: true, Version: "0.1.0"})
		if diags = append(diags, more...); diags.HasErrors() {
			t.Errorf("%v\n%s", diags, s[2])
			continue
		}
		desired, err := config.Desired.Seal(openSealer{})
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range capacity.Check(&desired) {
			t.Errorf("%s: %s\n%s", problem.Addr, problem.Detail, s[2])
		}
		doc := &state.Document{FormatVersion: state.FormatVersion, Lineage: "lineage"}
		p := reconcile.Diff(&desired, change.Accepted(doc, desired), &plan.Observed{}, time.Unix(0, 0))
		if got, want := p.Counts()[plan.VerbCreate], declaredDeclarations(&desired); got != want {
			t.Errorf("%d to create, want %d\n%s", got, want, s[2])
		}
	}
	if planned < 20 {
		t.Errorf("only %d examples", planned)
	}
}

func declaredDeclarations(d *schema.Desired) int {
	return len(d.Namespaces) + len(d.Reservations) + len(d.Groups) + len(d.Jobs) + len(d.Notifications)
}
