package apply_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// streams is what hosts report by streams, as a test says.
type streams struct {
	next     []apply.LiveHost
	assigned map[string]state.Generation
}

func (s *streams) Take(time.Duration) []apply.LiveHost {
	next := s.next
	s.next = nil
	return next
}

func (s *streams) Assigned(slice string, object state.Generation, _ []byte) {
	s.assigned[slice] = object
}
func (s *streams) Unassigned(slice string) { delete(s.assigned, slice) }

// live is a report by stream of a host of slice a, or b.
func live(slice string, seq uint64, of schema.TaskState) apply.LiveHost {
	r := &state.HostReport{Slice: slice, Seq: seq, Boot: "boot"}
	if of != "" {
		r.Task = &state.TaskReport{State: of}
	}
	return apply.LiveHost{Slice: slice, Report: r, Live: true, Seq: seq}
}

// While all hosts are live the store is listed now and then, and their objects are not read;
// once one is not, the store is listed at each look, and what is newer there counts.
func TestObservingLiveHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newAsked(), &streams{assigned: map[string]state.Generation{}}
		write := func(slice string, seq uint64, of schema.TaskState) {
			a.write(t, store.HostKey(slice, 0), live(slice, seq, of).Report)
		}
		write("a", 1, "")
		write("b", 1, "")
		a.write(t, store.AssignKey("a"), state.Assignment{Slice: "a"})
		o := &apply.Observer{Store: a, Live: s}
		steps := []struct {
			name  string
			do    func()
			wait  time.Duration
			want  string
			state schema.TaskState // of the task of a
			alive bool             // a is known to live
		}{
			{name: "first", want: "1 list, 3 reads, changed [a b]"},
			{name: "one is live", do: func() { s.next = []apply.LiveHost{live("a", 2, "")} }, want: "1 list, 0 reads, changed [a]", alive: true},
			{name: "the other is, too", do: func() { s.next = []apply.LiveHost{live("b", 2, "")} }, want: "1 list, 0 reads, changed [b]", alive: true},
			{name: "all are live", want: "0 list, 0 reads, changed []", alive: true},
			{name: "a task starts", do: func() { s.next = []apply.LiveHost{live("a", 3, schema.TaskRunning)}; write("a", 4, schema.TaskRunning) },
				want: "0 list, 0 reads, changed [a]", alive: true, state: schema.TaskRunning},
			{name: "a check of the store", wait: time.Minute, want: "1 list, 0 reads, changed []", alive: true, state: schema.TaskRunning},
			{name: "a late report", do: func() { s.next = []apply.LiveHost{live("a", 2, schema.TaskPending)} },
				want: "0 list, 0 reads, changed []", alive: true, state: schema.TaskRunning},
			{name: "the stream breaks", do: func() { s.next = []apply.LiveHost{{Slice: "a", Heard: time.Second, Seq: 9}} },
				want: "1 list, 1 reads, changed [a]", state: schema.TaskRunning},
			{name: "an older object", do: func() { write("a", 8, schema.TaskPending) },
				want: "1 list, 1 reads, changed [a]", state: schema.TaskRunning},
			{name: "a newer one", do: func() { write("a", 10, schema.TaskFailed) }, want: "1 list, 1 reads, changed [a]", state: schema.TaskFailed},
			{name: "it is back", do: func() { s.next = []apply.LiveHost{live("a", 11, schema.TaskFailed)} },
				want: "1 list, 0 reads, changed [a]", alive: true, state: schema.TaskFailed},
			{name: "quiet again", want: "0 list, 0 reads, changed []", alive: true, state: schema.TaskFailed},
		}
		for _, step := range steps {
			time.Sleep(step.wait)
			if step.do != nil {
				step.do()
			}
			if got := a.look(t, o); got != step.want {
				t.Errorf("%s: got %s, want %s", step.name, got, step.want)
			}
			obs, err := o.Observe(t.Context(), "stack")
			if err != nil {
				t.Fatal(err)
			}
			host := obs.Hosts["a"][0]
			var of schema.TaskState
			if host.Task != nil {
				of = host.Task.State
			}
			if of != step.state || host.Lives() != step.alive {
				t.Errorf("%s: the task of a is %q, known to live: %t; want %q, %t", step.name, of, host.Lives(), step.state, step.alive)
			}
		}
		if got := s.assigned["a"]; got == 0 {
			t.Error("the assignment that is in the store was not announced")
		}
	})
}
