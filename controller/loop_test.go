package controller

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// newLeader leads over a store in memory.
func newLeader(t *testing.T) *leader {
	t.Helper()
	return newLeaderOver(t, storetest.NewMemory())
}

func newLeaderOver(t *testing.T, s store.Store) *leader {
	t.Helper()
	stepper, err := apply.New(t.Context(), apply.Config{
		Store: s, Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{loop: newLoop(), stepper: stepper, cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	l.leading = true
	return l
}

// A launch that could not be saved is sent again. It is in the document then, and is
// answered only once it is in the store too.
func TestAnswersOnlyWhatIsSaved(t *testing.T) {
	var full atomic.Bool
	s := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, _ string) error {
		if full.Load() && op == storetest.OpPut {
			return unix.ENOSPC
		}
		return nil
	}}
	l := newLeaderOver(t, s)
	launch := func(doc *state.Document, _ time.Time) (*state.Document, error) {
		if doc.LocalPlace == "launched" {
			return doc, nil // as the launch of a request that was made before
		}
		next := doc.Clone()
		next.LocalPlace = "launched"
		return next, nil
	}
	send := func() error {
		answer := make(chan error, 1)
		l.mu.Lock()
		l.queue = append(l.queue, &request{change: launch, done: answer})
		l.mu.Unlock()
		_ = l.change(t.Context())
		return <-answer
	}
	full.Store(true)
	for range 3 {
		if err := send(); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("with a full disk it was answered %v", err)
		}
	}
	full.Store(false)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	if saved, _, err := apply.LoadState(t.Context(), s); err != nil || saved.LocalPlace != "launched" {
		t.Errorf("answered, but the store has %+v, %v", saved, err)
	}
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
