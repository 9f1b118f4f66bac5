package apply_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// late is a Late of source, and a document that wants what it says with no value
// known.
func late(t *testing.T, source string) (*apply.Late, *state.Document) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	src, diags := lang.Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	opts := eval.Options{Environ: []string{"FRAY_VAR_word=said"}}
	cfg, diags := src.Evaluate(opts)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return &apply.Late{Source: src, Options: opts}, &state.Document{Desired: cfg.Desired}
}

// taken is what Refine makes of a document: the document with that, or itself.
func taken(t *testing.T, l *apply.Late, doc *state.Document) (*state.Document, bool) {
	t.Helper()
	desired, err := l.Refine(doc)
	if err != nil {
		t.Fatal(err)
	}
	if desired == nil {
		return doc, false
	}
	next := *doc
	next.Desired = *desired
	return &next, true
}

// texts are the commands and the variables X of a document's jobs.
func texts(doc *state.Document) map[string]string {
	all := map[string]string{}
	for i := range doc.Desired.Jobs {
		j := &doc.Desired.Jobs[i]
		var words []string
		for _, w := range j.Command {
			words = append(words, w.String())
		}
		all[j.Addr.Name] = strings.Join(append(words, j.Environment.Env["X"].String()), " ")
	}
	return all
}

const lateSource = `
	variable "word" { type = string }
	job "a" { command = ["x"] }
	job "b" {
		command = ["x", "first", job.a.address]
		environment {
			env = { X = "${var.word} ${job.a.address}", Y = "still" }
		}
	}
	job "c" { command = ["x", job.b.address] }
`

// TestLateMoment: the time and the UUIDs of an apply reach the jobs that read them, once,
// in whichever process: no step and no restart of one chooses them anew.
func TestLateMoment(t *testing.T) {
	t.Parallel()
	l, doc := late(t, `
		job "a" {
			command = ["x", uuid()]
			environment {
				env = { X = timestamp() }
			}
		}
		job "many" {
			count   = 2
			command = ["x", uuid()]
		}
	`)
	l.Options.Moment = l.Options.Moment.Begun(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	doc, changed := taken(t, l, doc)
	if got := texts(doc)["a"]; !changed || !strings.HasSuffix(got, " 2026-01-02T03:04:05Z") {
		t.Errorf("a is %q, want the time of the apply", got)
	}
	if first, second := doc.Desired.Jobs[1].Command[1], doc.Desired.Jobs[2].Command[1]; first == second || first.IsUnknown() {
		t.Errorf("the instances have the UUIDs %s and %s", first, second)
	}
	doc = started(t, doc, "job.a", "1")
	for name, l := range map[string]*apply.Late{"the same process": l, "another process": {Source: l.Source, Options: l.Options}} {
		if next, changed := taken(t, l, doc); changed {
			t.Errorf("%s: the jobs changed to %v", name, texts(next))
		}
	}
}

// TestLateFollows: values that become known, change, and are unknown again for a
// while reach who reads them, in another process too.
func TestLateFollows(t *testing.T) {
	t.Parallel()
	l, doc := late(t, lateSource)
	if _, changed := taken(t, l, doc); changed {
		t.Error("with nothing known, what is desired changed")
	}
	for _, at := range []string{"1", "2"} {
		doc = started(t, doc, "job.a", at)
		before := texts(doc)["b"]
		next, changed := taken(t, l, doc)
		if got, want := texts(next)["b"], "x first "+at+" said "+at; !changed || got != want {
			t.Errorf("b is %q, want %q", got, want)
		}
		if texts(doc)["b"] != before {
			t.Error("the document before was changed")
		}
		doc = next
		if _, changed := taken(t, l, doc); changed {
			t.Error("the same document again: it changed")
		}
	}
	doc = started(t, doc, "job.a", "3") // while no Late read it
	other := &apply.Late{Source: l.Source, Options: l.Options}
	if next, changed := taken(t, other, doc); !changed || texts(next)["b"] != "x first 3 said 3" {
		t.Errorf("another process: b is %q, want what a has now", texts(next)["b"])
	}
	gone := *doc
	gone.Jobs = nil
	if next, changed := taken(t, l, &gone); changed {
		t.Errorf("a is gone: b became %q, want it as it was", texts(next)["b"])
	}
}

// TestLateTakesNothingElse: what does not wait for values stays as it was accepted.
func TestLateTakesNothingElse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(l *apply.Late, doc *state.Document)
		want   map[string]string
	}{
		{"nothing else is new", func(*apply.Late, *state.Document) {}, map[string]string{"a": "x ", "b": "x first 1 said 1", "c": "x (known after apply) "}},
		{"another value of a variable", func(l *apply.Late, _ *state.Document) {
			l.Options.Environ = []string{"FRAY_VAR_word=other"}
		}, map[string]string{"a": "x ", "b": "x first 1 other 1", "c": "x (known after apply) "}},
		{"known words were accepted otherwise", func(_ *apply.Late, doc *state.Document) {
			doc.Desired.Jobs[1].Command[1] = schema.Plain("second")
		}, map[string]string{"a": "x ", "b": "x second 1 said 1", "c": "x (known after apply) "}},
		{"a command was accepted of another length", func(_ *apply.Late, doc *state.Document) {
			doc.Desired.Jobs[1].Command = []schema.Text{schema.Plain("y")}
		}, map[string]string{"a": "x ", "b": "y said 1", "c": "x (known after apply) "}},
		{"a variable was not accepted", func(_ *apply.Late, doc *state.Document) {
			doc.Desired.Jobs[1].Environment.Env = map[string]schema.Text{"Z": schema.Plain("z")}
		}, map[string]string{"a": "x ", "b": "x first 1 ", "c": "x (known after apply) "}},
		{"a job was released", func(_ *apply.Late, doc *state.Document) {
			doc.Desired.Jobs = slices.Delete(doc.Desired.Jobs, 1, 2)
		}, map[string]string{"a": "x ", "c": "x (known after apply) "}},
		{"it is none of the targets", func(l *apply.Late, _ *state.Document) {
			l.Targets = []schema.Address{{Kind: schema.KindJob, Name: "a"}}
		}, map[string]string{"a": "x ", "b": "x first (known after apply) (known after apply)", "c": "x (known after apply) "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, doc := late(t, lateSource)
			test.change(l, doc)
			doc, _ = taken(t, l, started(t, doc, "job.a", "1"))
			got := texts(doc)
			for name, want := range test.want {
				if got[name] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("the jobs are %v, want %v", got, test.want)
			}
		})
	}
}

// noData is a Reader that fails until it is repaired.
type noData struct {
	eval.Reader

	repaired *bool
	made     *int
}

func (r noData) Outputs(eval.StackRef) (map[string]eval.DataOutput, error) {
	if !*r.repaired {
		return nil, errors.New("no permission to read that")
	}
	return map[string]eval.DataOutput{"word": {JSON: []byte(`"read"`)}}, nil
}

// TestLateReadsDataAgain: what could not be evaluated is evaluated whole the next
// time, with data read anew.
func TestLateReadsDataAgain(t *testing.T) {
	t.Parallel()
	l, doc := late(t, `
		data "outputs" "other" { path = "/other" }
		job "a" { command = ["x"] }
		job "b" { command = ["x", "${data.outputs.other.values.word} ${job.a.address}"] }
	`)
	repaired, made := false, 0
	l.Data = func() eval.Reader {
		made++
		return noData{repaired: &repaired, made: &made}
	}
	doc = started(t, doc, "job.a", "1")
	for range 2 {
		if got, err := l.Refine(doc); err == nil || !strings.Contains(err.Error(), "No permission to read that") {
			t.Errorf("got %v, %v; want why data cannot be read", got, err)
		}
	}
	repaired = true
	if next, _ := taken(t, l, doc); texts(next)["b"] != "x read 1 " {
		t.Errorf("b is %q, want what was read", texts(next)["b"])
	}
	if made != 3 {
		t.Errorf("data was read %d times, want once for each evaluation", made)
	}
}

// TestLateFailsUntilItCan: what cannot be evaluated is not forgotten because
// nothing is new the next time.
func TestLateFailsUntilItCan(t *testing.T) {
	t.Parallel()
	l, doc := late(t, `
		job "a" { command = ["x"] }
		job "b" { command = ["x", tonumber(job.a.address)] }
	`)
	doc, _ = taken(t, l, started(t, doc, "job.a", "1"))
	doc = started(t, doc, "job.a", "six")
	for range 2 {
		if got, err := l.Refine(doc); err == nil {
			t.Errorf("a word that is no number: %v, want an error", got)
		}
	}
	if next, _ := taken(t, l, started(t, doc, "job.a", "2")); texts(next)["b"] != "x 2 " {
		t.Errorf("b is %q, want the number", texts(next)["b"])
	}
}

// TestLateLeavesWhatRests: a job whose work is done, or that was stopped,
// is not run again because what it read has moved; once it runs again for another
// reason it reads what is there by then.
func TestLateLeavesWhatRests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		is   state.Job
		want string // of the word that follows
	}{
		{"it has succeeded", state.Job{Attempt: 1, Status: schema.JobSucceeded}, "1"},
		{"it was stopped", state.Job{Attempt: 1, Status: schema.JobStopped}, "1"},
		{"it is to be stopped", state.Job{Attempt: 1, Status: schema.JobRunning, JobRequests: state.JobRequests{Stop: true}}, "1"},
		{"it runs", state.Job{Attempt: 1, Status: schema.JobRunning}, "2"},
		{"it has failed", state.Job{Attempt: 1, Status: schema.JobFailed}, "2"},
		{"it is to be replaced", state.Job{Attempt: 1, Status: schema.JobSucceeded, JobRequests: state.JobRequests{Replace: true}}, "2"},
		{"it was stopped before it began", state.Job{Status: schema.JobStopped}, "2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, doc := late(t, lateSource)
			doc, _ = taken(t, l, started(t, doc, "job.a", "1"))
			doc = started(t, doc, "job.a", "2")
			doc.Jobs[address(t, "job.b")] = &test.is
			doc, _ = taken(t, l, doc)
			if got, want := texts(doc)["b"], "x first "+test.want+" said "+test.want; got != want {
				t.Errorf("b is %q, want %q", got, want)
			}
			if _, changed := taken(t, l, doc); changed {
				t.Error("the same document again: it changed")
			}
			other := &apply.Late{Source: l.Source, Options: l.Options}
			if next, _ := taken(t, other, doc); texts(next)["b"] != texts(doc)["b"] {
				t.Errorf("another process: b is %q, want %q", texts(next)["b"], texts(doc)["b"])
			}
			doc = started(t, doc, "job.b", "9")
			if doc, _ = taken(t, l, doc); texts(doc)["b"] != "x first 2 said 2" {
				t.Errorf("b runs again and is %q, want what a has now", texts(doc)["b"])
			}
		})
	}
}

// crowd is more readers than are given other texts at once.
const crowd = 5000

// manyReaders all read what moves with one job.
func manyReaders(t *testing.T) (*apply.Late, *state.Document) {
	t.Helper()
	return late(t, fmt.Sprintf(`
		job "a" { command = ["x"] }
		job "r" {
			count   = %d
			command = ["x", job.a.address]
		}
	`, crowd))
}

// TestLateSharesOutManyReaders: of very many jobs that read what has moved each
// call takes over some, until all read the newest; what moves meanwhile, and who
// rests meanwhile, is not lost.
func TestLateSharesOutManyReaders(t *testing.T) {
	t.Parallel()
	l, doc := manyReaders(t)
	reading := func(doc *state.Document, word string) (n int) {
		for i := range doc.Desired.Jobs {
			if slices.Contains(doc.Desired.Jobs[i].Command, schema.Plain(word)) {
				n++
			}
		}
		return n
	}
	doc, _ = taken(t, l, started(t, doc, "job.a", "1"))
	if n := reading(doc, "1"); n == 0 || n == crowd {
		t.Fatalf("at the first call %d of %d read the address, want some", n, crowd)
	}
	doc = started(t, doc, "job.a", "2")
	rests := address(t, fmt.Sprintf("job.r[%d]", crowd-1))
	doc.Jobs[rests] = &state.Job{Attempt: 1, Status: schema.JobSucceeded}
	for changed := true; changed; {
		before := reading(doc, "2")
		if doc, changed = taken(t, l, doc); changed && reading(doc, "2") <= before {
			t.Fatalf("a call changed nothing: %d read the address, as before", before)
		}
	}
	if n := reading(doc, "2"); n != crowd-1 {
		t.Errorf("in the end %d of %d read the new address, want all but the one that rests", n, crowd)
	}
	delete(doc.Jobs, rests)
	if doc, _ = taken(t, l, doc); reading(doc, "2") != crowd {
		t.Errorf("the last one rests no more: %d read the new address, want %d", reading(doc, "2"), crowd)
	}
}

// TestLateLetsNoReaderWaitForEver: where what many jobs read moves again and again,
// each of them has its turn all the same.
func TestLateLetsNoReaderWaitForEver(t *testing.T) {
	t.Parallel()
	l, doc := manyReaders(t)
	for move := range 8 {
		doc, _ = taken(t, l, started(t, doc, "job.a", fmt.Sprint(move)))
	}
	for i := range doc.Desired.Jobs {
		j := &doc.Desired.Jobs[i]
		if len(j.Command) > 1 && (j.Command[1].IsUnknown() || slices.Contains(j.Command, schema.Plain("0"))) {
			t.Fatalf("after eight moves %s reads none of the later ones", j.Addr)
		}
	}
}
