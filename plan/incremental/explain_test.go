package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// stepsOf are sources of a configuration in which only commands read a variable.
func stepsOf(names ...string) change.Sources {
	return change.Sources{Variables: func(_ schema.Address, path string) []string {
		if path == "command" {
			return slices.Clone(names)
		}
		return nil
	}}
}

func commanded(text string) func(*schema.Job) {
	return func(j *schema.Job) { j.Command = []schema.Text{schema.Plain(text)} }
}

// acceptExplained accepts a configuration with the causes of what changes.
func (w *world) acceptExplained(desired schema.Desired, from change.Sources) {
	w.t.Helper()
	w.acceptWith(desired, func(doc *state.Document) { change.Explain(doc, change.Causes(doc, from)) })
}

// What a variable changed is put down to it: in the plan, in what hosts and users read of
// the attempt, and not any more when that is carried out.
func TestVariablesAreNamed(t *testing.T) {
	w := newWorld(t)
	a := jobAddr("a")
	w.accept(configuration(newJob("a")))
	w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
	w.acceptExplained(configuration(newJob("a", commanded("x"), func(j *schema.Job) { j.StopGrace++ })), stepsOf("steps", "rate"))
	p := reconcile.Diff(&w.doc.Desired, w.doc, &plan.Observed{}, w.now)
	if got := p.Changes[0].Reason; got != "variables rate, steps changed" {
		t.Errorf("the plan's reason is %q", got)
	}
	for _, attr := range p.Changes[0].Attrs {
		if want := attr.Path == "command"; want != slices.Equal(attr.Variables, []string{"rate", "steps"}) {
			t.Errorf("variables of %s are %q", attr.Path, attr.Variables)
		}
	}
	w.settle(time.Minute)
	j := w.job(a)
	const text = "variables rate, steps changed; stop_grace changed"
	if first, second := j.Attempts[0], j.Attempts[1]; first.Reason != text || second.Why != "restarted because "+text {
		t.Errorf("the first attempt ended because of %q, the second is %q; want %q", first.Reason, second.Why, text)
	}
	if j.Causes != nil {
		t.Errorf("the job has the causes %v after it was restarted", j.Causes)
	}
	if diff := cmp.Diff(&state.ChangeCauses{Variables: map[string][]string{"command": {"rate", "steps"}}}, j.Attempts[0].Causes); diff != "" {
		t.Errorf("causes of the end (-want +got):\n%s", diff)
	}

	// The same attribute, edited in the files.
	w.acceptExplained(configuration(newJob("a", commanded("y"), func(j *schema.Job) { j.StopGrace++ })), stepsOf())
	w.settle(time.Minute)
	if got := w.job(a).Attempts[1].Reason; got != "command changed" {
		t.Errorf("the second attempt ended because of %q, want the command", got)
	}
}

// A replacement names its causes, too, and one that was asked for keeps that.
func TestVariablesOfReplacements(t *testing.T) {
	w := newWorld(t)
	a := jobAddr("a")
	w.accept(configuration(newJob("a")))
	w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
	sources := change.Sources{Variables: func(_ schema.Address, path string) []string {
		if path == "resources.tpu" {
			return []string{"shape"}
		}
		return nil
	}}
	w.acceptExplained(configuration(newJob("a", onTPU("v5litepod-16"))), sources)
	p := reconcile.Diff(&w.doc.Desired, w.doc, &plan.Observed{}, w.now)
	if c := p.Changes[0]; c.Verb != plan.VerbReplace || c.Reason != "variable shape changed" || c.ActionReason != plan.ReplaceBecauseUpdate {
		t.Errorf("got %s (%s), reason %q", c.Verb, c.ActionReason, c.Reason)
	}
	w.settle(time.Minute)
	if got := w.job(a).Attempts[0].Reason; got != "it is being replaced: variable shape changed" {
		t.Errorf("the attempt ended because of %q", got)
	}
}

// What was accepted and is not carried out yet keeps its causes through the next apply,
// as long as it is to change; what is as it was again has none.
func TestCausesOfUnfinishedChanges(t *testing.T) {
	w := newWorld(t)
	a := jobAddr("a")
	first := configuration(newJob("a"))
	w.accept(first)
	w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
	changed := configuration(newJob("a", commanded("x")))
	w.acceptExplained(changed, stepsOf("steps"))
	w.acceptExplained(changed, stepsOf())
	if c := w.job(a).Causes; c == nil || !slices.Equal(c.Variables["command"], []string{"steps"}) {
		t.Errorf("accepted again, the job has the causes %v", c)
	}
	w.acceptExplained(changed, stepsOf("rate", "steps"))
	if c := w.job(a).Causes; c == nil || !slices.Equal(c.Variables["command"], []string{"rate", "steps"}) {
		t.Errorf("after another variable the job has the causes %v", c)
	}
	w.acceptExplained(first, stepsOf("steps"))
	if c := w.job(a).Causes; c != nil {
		t.Errorf("back where it was, the job has the causes %v", c)
	}
}

// The files of a project that changed are named wherever causes are, five of them.
func TestFilesAreNamed(t *testing.T) {
	w := newWorld(t)
	a := jobAddr("a")
	with := func(sum string) func(*schema.Job) {
		return func(j *schema.Job) { j.Environment.Project, j.Environment.Bundle = "app", sum }
	}
	w.accept(configuration(newJob("a", with("aa"))))
	w.until(time.Minute, "up", func(*plan.Plan) bool { return w.job(a).Ready })
	var asked [][2]string
	files := make([]plan.FileChange, 0, 7)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		files = append(files, plan.FileChange{Path: name, Verb: change.FileChanged})
	}
	w.acceptExplained(configuration(newJob("a", with("bb"))), change.Sources{Files: func(before, after string) []plan.FileChange {
		asked = append(asked, [2]string{before, after})
		return files
	}})
	w.settle(time.Minute)
	if got := w.job(a).Attempts[0].Reason; got != "project changed: a changed, b changed, c changed, d changed, e changed and 2 more" {
		t.Errorf("the attempt ended because of %q", got)
	}
	if diff := cmp.Diff([][2]string{{"aa", "bb"}}, asked); diff != "" {
		t.Errorf("projects that were compared (-want +got):\n%s", diff)
	}
}

// Declarations without processes name their causes in plans.
func TestVariablesOfResources(t *testing.T) {
	w := newWorld(t)
	of := func(chips int) schema.Desired {
		d := configuration()
		d.Namespaces = []schema.Namespace{{Addr: schema.ScopedAddress(schema.KindNamespace, "n"), MaxChips: chips}}
		return d
	}
	w.accept(of(4))
	w.settle(time.Minute)
	w.acceptExplained(of(8), change.Sources{Variables: func(_ schema.Address, path string) []string { return []string{"chips"} }})
	p := reconcile.Diff(&w.doc.Desired, w.doc, &plan.Observed{}, w.now)
	if c := p.Changes[0]; c.Verb != plan.VerbUpdate || c.Reason != "variable chips changed" {
		t.Errorf("got %s, reason %q", c.Verb, c.Reason)
	}
	w.settle(time.Minute)
	for addr, r := range w.doc.Resources {
		if r.Causes != nil {
			t.Errorf("%s has the causes %v after its change", addr, r.Causes)
		}
	}
}
