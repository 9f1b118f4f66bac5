package loop

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// leads makes a leader over a store in memory.
func leads(t *testing.T) *leader {
	t.Helper()
	return leadsOver(t, storetest.NewMemory())
}

func leadsOver(t *testing.T, s store.Store) *leader {
	t.Helper()
	stepper, err := apply.New(t.Context(), apply.Config{
		Store: s, Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	services := access.NewSerializer()
	services.Publish(&access.View{Doc: stepper.Document(), Plan: &plan.Plan{}}) // it leads
	return newLeader(Config{Log: slog.New(slog.DiscardHandler)}, services, stepper, func() store.Lease { return store.Lease{Epoch: 1} })
}

// change hands a change in and has the leader make it; it must run in a bubble.
func change(t *testing.T, l *leader, change access.Change) error {
	t.Helper()
	answer := make(chan error, 1)
	go func() { answer <- l.services.Do(t.Context(), change) }()
	synctest.Wait()
	_ = l.change(t.Context())
	return <-answer
}

// A launch that could not be saved is sent again. It is in the document then, and is
// answered only once it is in the store too.
func TestAnswersOnlyWhatIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		s := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, _ string) error {
			if full.Load() && op == storetest.OpPut {
				return unix.ENOSPC
			}
			return nil
		}}
		l := leadsOver(t, s)
		launch := func(doc *state.Document, _ time.Time) (*state.Document, error) {
			if doc.LocalPlace == "launched" {
				return doc, nil // as the launch of a request that was made before
			}
			next := doc.Clone()
			next.LocalPlace = "launched"
			return next, nil
		}
		full.Store(true)
		for range 3 {
			if err := change(t, l, launch); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("with a full disk it was answered %v", err)
			}
		}
		full.Store(false)
		if err := change(t, l, launch); err != nil {
			t.Fatal(err)
		}
		if saved, _, err := apply.LoadState(t.Context(), s); err != nil || saved.LocalPlace != "launched" {
			t.Errorf("answered, but the store has %+v, %v", saved, err)
		}
	})
}

// A change that fails, even by a mistake in fray, takes none of the others along.
func TestChangesFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		rejected := errors.New("rejected")
		outputs := func(doc *state.Document, _ time.Time) (*state.Document, error) {
			next := doc.Clone()
			next.Serial++
			next.LocalPlace += "x"
			return next, nil
		}
		changes := []access.Change{
			outputs,
			func(*state.Document, time.Time) (*state.Document, error) { return nil, rejected },
			func(doc *state.Document, _ time.Time) (*state.Document, error) {
				return doc, errors.New(doc.Jobs[doc.Past["missing"].Spec.Addr].ID)
			},
			func(doc *state.Document, _ time.Time) (*state.Document, error) { return doc, nil },
			outputs,
		}
		answers := make([]chan error, len(changes))
		for i, change := range changes {
			answers[i] = make(chan error, 1)
			go func() { answers[i] <- l.services.Do(t.Context(), change) }()
			synctest.Wait()
		}
		if err := l.change(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "rejected", "by a mistake in fray", "", ""} {
			switch err := <-answers[i]; {
			case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("change %d: got %v, want %q", i, err, want)
			}
		}
		if got := l.stepper.Document().LocalPlace; got != "xx" {
			t.Errorf("the state has %q, want both changes in it", got)
		}
	})
}

// Changes that wait when leading ends, or come afterwards, are rejected at once.
func TestChangesAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		same := func(doc *state.Document, _ time.Time) (*state.Document, error) { return doc, nil }
		waited := make(chan error, 1)
		go func() { waited <- l.services.Do(t.Context(), same) }()
		synctest.Wait()
		l.services.Stop()
		if err := <-waited; !errors.Is(err, access.ErrNotLeading) {
			t.Errorf("what waited got %v, want that this one does not lead", err)
		}
		if err := l.services.Do(t.Context(), same); !errors.Is(err, access.ErrNotLeading) {
			t.Errorf("what came later got %v, want that this one does not lead", err)
		}
	})
}

// An observer makes no changes: they would never be carried out.
func TestObserverMakesNoChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		l.cfg.Observe = true
		before := l.stepper.Document()
		err := change(t, l, func(doc *state.Document, _ time.Time) (*state.Document, error) { return doc.Clone(), nil })
		if !errors.Is(err, access.ErrObserves) {
			t.Errorf("got %v, want that this controller only observes", err)
		}
		if l.stepper.Document() != before {
			t.Error("the state was changed")
		}
	})
}
