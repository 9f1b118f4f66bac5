package sessions

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// stack is a state that takes every change.
type stack struct {
	mu  sync.Mutex
	doc *state.Document
}

var _ access.State = (*stack)(nil)

func (s *stack) View() *access.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &access.View{Doc: s.doc, At: time.Now()}
}

func (s *stack) Changed() <-chan struct{} { return nil }

func (s *stack) Do(_ context.Context, change access.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := change(s.doc, time.Now())
	if err == nil {
		s.doc = next
	}
	return err
}

// stopped are the names of the jobs that were asked to end.
func (s *stack) stopped() map[string]bool {
	names := map[string]bool{}
	for addr, j := range s.View().Doc.Jobs {
		if j.Stop {
			names[addr.Name] = true
		}
	}
	return names
}

func newStack(now time.Time, jobs map[string]state.Launch) *stack {
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{}}
	for name, launch := range jobs {
		launch.At = now
		addr := schema.Address{Kind: schema.KindJob, Name: name}
		doc.Jobs[addr] = &state.Job{Spec: &schema.Job{Addr: addr}, Status: schema.JobRunning, Launch: &launch}
	}
	return &stack{doc: doc}
}

// led runs Reap in a bubble, of a stack with these jobs.
func led(t *testing.T, jobs map[string]state.Launch, do func(s *Sessions, at *stack, stopped func(name string) bool)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, at := New(), newStack(time.Now(), jobs)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Reap(ctx, at, slog.New(slog.DiscardHandler))
		}()
		do(s, at, func(name string) bool {
			synctest.Wait()
			return at.stopped()[name]
		})
		cancel()
		<-done
	})
}

func TestASessionOutlivesItsHolderByTheLease(t *testing.T) {
	jobs := map[string]state.Launch{
		"goes": {Session: "one"}, "stays": {Session: "one", Detached: true}, "other": {Session: "two"}, "free": {},
	}
	led(t, jobs, func(s *Sessions, at *stack, stopped func(string) bool) {
		releaseOther := s.Hold("two")
		defer releaseOther()
		first, second := s.Hold("one"), s.Hold("one")
		time.Sleep(time.Hour)
		first()
		first() // once is enough
		time.Sleep(time.Hour)
		if stopped("goes") {
			t.Fatal("it ended while a call held its session")
		}
		second()
		time.Sleep(Lease - time.Second)
		if stopped("goes") {
			t.Fatal("it ended within the lease")
		}
		third := s.Hold("one") // the client is back
		time.Sleep(time.Hour)
		if stopped("goes") {
			t.Fatal("it ended though its client came back")
		}
		third()
		time.Sleep(Lease + pace)
		if !stopped("goes") || stopped("stays") || stopped("other") || stopped("free") {
			t.Errorf("got %v stopped, want goes alone", at.stopped())
		}
	})
}

// A controller that begins to lead gives clients the lease to find it.
func TestSessionsOfAFormerLeader(t *testing.T) {
	led(t, map[string]state.Launch{"back": {Session: "one"}, "gone": {Session: "two"}}, func(s *Sessions, at *stack, stopped func(string) bool) {
		time.Sleep(Lease - time.Second)
		if stopped("gone") {
			t.Fatal("it ended before its client could come back")
		}
		defer s.Hold("one")()
		time.Sleep(time.Second + pace)
		if !stopped("gone") || stopped("back") {
			t.Errorf("got %v stopped, want the one of the client that did not come back", at.stopped())
		}
	})
}

func TestAClientEndsItsSession(t *testing.T) {
	led(t, map[string]state.Launch{"goes": {Session: "one"}, "stays": {Session: "two"}}, func(s *Sessions, at *stack, stopped func(string) bool) {
		defer s.Hold("one")()
		defer s.Hold("two")()
		s.End("one")
		time.Sleep(pace)
		if !stopped("goes") || stopped("stays") {
			t.Errorf("got %v stopped, want goes alone", at.stopped())
		}
		time.Sleep(memory + pace)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.ended)+len(s.left) != 0 {
			t.Errorf("%v and %v are still known", s.ended, s.left)
		}
	})
}

// The reason of a job that ends with its client names that, and says what became of it.
func TestWhyAJobEndsWithItsClient(t *testing.T) {
	led(t, map[string]state.Launch{"closed": {Session: "one", By: "ann"}, "lost": {Session: "two"}}, func(s *Sessions, at *stack, _ func(string) bool) {
		s.Hold("two")()
		s.End("one")
		time.Sleep(Lease + pace)
		synctest.Wait()
		at.mu.Lock()
		defer at.mu.Unlock()
		for addr, j := range at.doc.Jobs {
			want := map[string]string{
				"closed": "the end of client one of ann, which created it",
				"lost":   "the loss of client two, which created it: nothing was heard of it for 30s",
			}[addr.Name]
			if j.StopBy != want {
				t.Errorf("%s: stopped by %q, want %q", addr.Name, j.StopBy, want)
			}
		}
	})
}
