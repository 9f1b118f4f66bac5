package apply_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// withStatus is the stepper's state with other statuses of its jobs.
func withStatus(s *apply.Stepper, change func(j *state.Job)) *state.Document {
	doc := s.Document().Clone()
	for addr, j := range doc.Jobs {
		changed := *j
		changed.Attempts = slices.Clone(j.Attempts)
		change(&changed)
		doc.Jobs[addr] = &changed
	}
	return doc
}

// What became of jobs is in the store before the state that says so, once, and a
// later holder joins what earlier ones wrote.
func TestJobsAreRecordedBesideTheState(t *testing.T) {
	w := newWorld()
	if records, kept, err := apply.ReadJobRecords(t.Context(), w); err != nil || kept || len(records) > 0 {
		t.Fatalf("got %v, kept %v, %v, want none", records, kept, err)
	}
	want := func(when string, status schema.JobStatus, n, objects int) {
		t.Helper()
		records, kept, err := apply.ReadJobRecords(t.Context(), w)
		listed, listErr := w.List(t.Context(), store.JobsPrefix)
		if err != nil || listErr != nil || !kept || len(records) != n || len(listed) != objects {
			t.Errorf("%s: got %v in %d objects, kept %v, %v, want %d in %d", when, records, len(listed), kept, err, n, objects)
		}
		for id, r := range records {
			if r.Status != status || r.ID != id {
				t.Errorf("%s: got %+v, want status %s", when, r, status)
			}
		}
	}
	s := newStepper(t, w.config())
	accept(t, s, jobs(3))
	want("before any attempt", "", 0, 1)
	converge(t, s)
	if err := s.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("started", schema.JobRunning, 3, 2)
	if err := s.Accept(t.Context(), withStatus(s, func(j *state.Job) { j.Status = schema.JobSucceeded })); err != nil {
		t.Fatal(err)
	}
	want("ended", schema.JobSucceeded, 3, 3)
	if err := s.Accept(t.Context(), withStatus(s, func(*state.Job) {})); err != nil {
		t.Fatal(err)
	}
	want("saved again", schema.JobSucceeded, 3, 3)

	cfg := w.config()
	cfg.Epoch = 2
	s = newStepper(t, cfg)
	if err := s.Accept(t.Context(), withStatus(s, func(j *state.Job) { j.Status = schema.JobFailed })); err != nil {
		t.Fatal(err)
	}
	want("by the next holder", schema.JobFailed, 3, 1)
	doc := s.Document().Clone()
	for addr, j := range doc.Jobs {
		declaredAgain := *j
		declaredAgain.ID = "another"
		doc.Jobs[addr] = &declaredAgain
		break
	}
	if err := s.Accept(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
	want("with one in place of another", schema.JobFailed, 3, 2)
	doc = s.Document().Clone()
	clear(doc.Jobs)
	if err := s.Accept(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
	want("of jobs that are no more", "", 0, 3)
}

// A state that says that a job has ended is never there without its record.
func TestTheRecordComesBeforeTheState(t *testing.T) {
	w := newWorld()
	s := newStepper(t, w.config())
	accept(t, s, jobs(1))
	converge(t, s)
	if err := s.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	failing := &refusing{Store: w, prefix: store.JobsPrefix}
	cfg := w.config()
	cfg.Store, cfg.Epoch = failing, 2
	s = newStepper(t, cfg)
	if err := s.Accept(t.Context(), withStatus(s, func(j *state.Job) { j.Status = schema.JobSucceeded })); err == nil {
		t.Fatal("the state is saved without the record, want an error")
	}
	doc, _, err := apply.LoadState(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range doc.Jobs {
		if j.Status.Ended() {
			t.Errorf("got %+v in the store, want a job that runs", j)
		}
	}
}

// refusing refuses writes below a prefix.
type refusing struct {
	store.Store
	prefix string
}

func (r *refusing) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if strings.HasPrefix(key, r.prefix) {
		return 0, errInjected
	}
	return r.Store.Put(ctx, key, data, want)
}
