package apply_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// refiner is a Refiner of source, and a document that wants what it says with
// no value known.
func refiner(t *testing.T, source string) (*apply.Refiner, *state.Document) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	src, diags := lang.Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	cfg, diags := src.Evaluate(eval.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	prepare := func(cfg *schema.Config) (schema.Desired, error) { return cfg.Desired.Seal(nil) }
	return &apply.Refiner{Source: src, Prepare: prepare}, &state.Document{Desired: cfg.Desired}
}

// started is doc with a job whose only task runs at an address.
func started(t *testing.T, doc *state.Document, job, at string) *state.Document {
	t.Helper()
	next := *doc
	next.Jobs = map[schema.Address]*state.Job{}
	maps.Copy(next.Jobs, doc.Jobs)
	next.Jobs[address(t, job)] = &state.Job{ID: "id", Attempts: []state.Attempt{{Tasks: []state.Task{{Address: at, Started: true}}}}}
	return &next
}

// word is the second word of a job's command.
func word(t *testing.T, d *schema.Desired, job string) string {
	t.Helper()
	for i := range d.Jobs {
		if d.Jobs[i].Addr == address(t, job) {
			return d.Jobs[i].Command[1].String()
		}
	}
	t.Fatalf("there is no %s", job)
	return ""
}

const chain = `
	job "a" { command = ["x"] }
	job "b" { command = ["x", job.a.address] }
	job_group "g" {
		job "c" { command = ["x", job.b.address] }
	}
	job "d" { command = ["x", join(",", [for j in job_group.g.job : j.address])] }
	job "e" { command = ["x", tonumber(job.d.address)] }
`

func TestRefinerTakesInWhatBecomesKnown(t *testing.T) {
	t.Parallel()
	r, doc := refiner(t, chain)
	refine := func() *schema.Desired {
		t.Helper()
		desired, err := r.Refine(doc)
		if err != nil {
			t.Fatal(err)
		}
		return desired
	}
	if got := refine(); got != nil {
		t.Errorf("with nothing known, what is desired changed: %v", got)
	}
	for _, step := range []struct{ job, at, reads string }{
		{"job.a", "1", "job.b"}, {"job.b", "2", "job_group.g.job.c"}, {"job_group.g.job.c", "3", "job.d"}, {"job.a", "4", "job.b"},
	} {
		doc = started(t, doc, step.job, step.at)
		before := word(t, &doc.Desired, step.reads)
		got := refine()
		if got == nil {
			t.Fatalf("the address of %s changed nothing", step.job)
		}
		if w := word(t, got, step.reads); w != step.at {
			t.Errorf("%s reads %q, want %q", step.reads, w, step.at)
		}
		if w := word(t, &doc.Desired, step.reads); w != before {
			t.Errorf("%s of the desired before became %q", step.reads, w)
		}
		doc.Desired = *got
		if got := refine(); got != nil {
			t.Errorf("the same document again: got %v, want nothing", got)
		}
	}
	doc = started(t, doc, "job.e", "5")
	if got := refine(); got != nil {
		t.Errorf("no job reads job.e, but got %v", got)
	}
	doc = started(t, doc, "job.d", "six")
	if _, err := r.Refine(doc); err == nil || !strings.Contains(err.Error(), "with the values now known") {
		t.Errorf("a word that is no number: %v", err)
	}
}

// TestRefinerKeepsToItsTargets: what is not taken over changes nothing.
func TestRefinerKeepsToItsTargets(t *testing.T) {
	t.Parallel()
	r, doc := refiner(t, chain)
	r.Target = func(d schema.Desired) schema.Desired {
		return apply.Target(doc.Desired, d, []schema.Address{address(t, "job.b")})
	}
	if got, err := r.Refine(doc); got != nil || err != nil {
		t.Errorf("with nothing known: %v, %v", got, err)
	}
	doc = started(t, doc, "job.b", "2")
	if got, err := r.Refine(doc); got != nil || err != nil {
		t.Errorf("c is no target, but got %v, %v", got, err)
	}
	doc = started(t, doc, "job.a", "1")
	got, err := r.Refine(doc)
	if err != nil || got == nil || word(t, got, "job.b") != "1" {
		t.Errorf("b is a target: %v, %v", got, err)
	}
}

// TestRefinerLeavesWhatRests: a job that has succeeded or was stopped is not run
// again because what it read has moved.
func TestRefinerLeavesWhatRests(t *testing.T) {
	t.Parallel()
	for _, status := range []schema.JobStatus{schema.JobSucceeded, schema.JobStopped} {
		r, doc := refiner(t, chain)
		step := func(what, want string) {
			t.Helper()
			desired, err := r.Refine(doc)
			if err != nil {
				t.Fatal(err)
			}
			if desired != nil {
				doc.Desired = *desired
			}
			if got := word(t, &doc.Desired, "job.b"); got != want {
				t.Errorf("b, which has %s, reads %q %s, want %q", status, got, what, want)
			}
		}
		doc = started(t, doc, "job.a", "1")
		step("at first", "1")
		doc = started(t, doc, "job.a", "2")
		doc.Jobs[address(t, "job.b")] = &state.Job{Attempt: 1, Status: status}
		step("after a has moved", "1")
		step("a moment later", "1")
		doc = started(t, doc, "job.e", "5")
		doc.Jobs[address(t, "job.b")] = &state.Job{Attempt: 1, Status: schema.JobPending}
		step("once it is to run again", "2")
	}
}
