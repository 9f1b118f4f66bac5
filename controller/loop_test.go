package controller

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// newLeader leads over a store in memory.
func newLeader(t *testing.T) *leader {
	t.Helper()
	stepper, err := apply.New(t.Context(), apply.Config{
		Store: storetest.NewMemory(), Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{loop: newLoop(), stepper: stepper, cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	l.leading = true
	return l
}

// A change that fails, even by a mistake in fray, takes none of the others along.
func TestChangesFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		refused := errors.New("refused")
		outputs := func(doc *state.Document, _ time.Time) (*state.Document, error) {
			next := doc.Clone()
			next.Serial++
			next.LocalPlace += "x"
			return next, nil
		}
		changes := []Change{
			outputs,
			func(*state.Document, time.Time) (*state.Document, error) { return nil, refused },
			func(doc *state.Document, _ time.Time) (*state.Document, error) {
				return doc, errors.New(doc.Jobs[doc.Past["nobody"].Spec.Addr].ID)
			},
			func(doc *state.Document, _ time.Time) (*state.Document, error) { return doc, nil },
			outputs,
		}
		answers := make([]chan error, len(changes))
		for i, change := range changes {
			answers[i] = make(chan error, 1)
			go func() { answers[i] <- l.Do(t.Context(), change) }()
			synctest.Wait()
		}
		if err := l.change(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "refused", "by a mistake in fray", "", ""} {
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

// Changes that wait when leading ends, or come afterwards, are refused at once.
func TestChangesAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		same := func(doc *state.Document, _ time.Time) (*state.Document, error) { return doc, nil }
		waited := make(chan error, 1)
		go func() { waited <- l.Do(t.Context(), same) }()
		synctest.Wait()
		l.stop()
		if err := <-waited; !errors.Is(err, errNotLeading) {
			t.Errorf("what waited got %v, want that this one does not lead", err)
		}
		if err := l.Do(t.Context(), same); !errors.Is(err, errNotLeading) {
			t.Errorf("what came later got %v, want that this one does not lead", err)
		}
	})
}

// Who only looks on takes no changes: they would never be carried out.
func TestObserverTakesNoChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.cfg.Observe = true
		before := l.stepper.Document()
		answer := make(chan error, 1)
		go func() {
			answer <- (&adminServer{desk: l.loop}).do(t.Context(), func(doc *state.Document, _ time.Time) (*state.Document, error) {
				return doc.Clone(), nil
			})
		}()
		synctest.Wait()
		if err := l.change(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "--observe") {
			t.Errorf("got %v, want UNAVAILABLE, so that whoever asks takes the lease", err)
		}
		if l.stepper.Document() != before {
			t.Error("the state was changed")
		}
	})
}
