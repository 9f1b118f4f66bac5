package actorrpc

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// An error of the method has the call run again only if that is asked for, exactly as often, and from the
// budget that losses use up, too.
func TestRetryErrors(t *testing.T) {
	all := &ErrorFilter{}
	types := func(names ...string) *ErrorFilter { return &ErrorFilter{Types: names} }
	declares := &wire.Retry{Retries: 2, Matches: true}
	tests := []struct {
		name     string
		events   string // of one run after the other: e(rror), l(oss) of the server; then it returns
		options  RPCOptions
		declared *wire.Retry
		runs     int
		code     rpcerror.Code // "": it returned
	}{
		{"not asked for", "e", RPCOptions{}, nil, 1, rpcerror.CodeApplication},
		{"only retries", "e", RPCOptions{Retries: 3}, nil, 1, rpcerror.CodeApplication},
		{"no retries", "e", RPCOptions{RetryErrors: all}, nil, 1, rpcerror.CodeApplication},
		{"idempotent is not that", "e", RPCOptions{RetryErrors: all, Idempotent: true}, nil, 1, rpcerror.CodeApplication},
		{"enough", "ee", RPCOptions{Retries: 2, RetryErrors: all}, nil, 3, ""},
		{"too few", "eee", RPCOptions{Retries: 2, RetryErrors: all}, nil, 3, rpcerror.CodeApplication},
		{"many", strings.Repeat("e", 40), RPCOptions{Retries: 40, RetryErrors: all}, nil, 41, ""},
		{"its type", "e", RPCOptions{Retries: 2, RetryErrors: types("KeyError", "lessons.TooHard")}, nil, 2, ""},
		{"a base class", "e", RPCOptions{Retries: 2, RetryErrors: types("LookupError")}, nil, 2, ""},
		{"another type", "e", RPCOptions{Retries: 2, RetryErrors: types("KeyError")}, nil, 1, rpcerror.CodeApplication},
		{"a match", "e", RPCOptions{Retries: 2, RetryErrors: &ErrorFilter{Match: func(e *rpcerror.Error) bool { return e.Message == "too hard" }}}, nil, 2, ""},
		{"no match", "e", RPCOptions{Retries: 2, RetryErrors: &ErrorFilter{Match: func(e *rpcerror.Error) bool { return e.Message == "" }}}, nil, 1, rpcerror.CodeApplication},
		{"declared", "ee", RPCOptions{}, declares, 3, ""},
		{"declared, too few", "eee", RPCOptions{}, declares, 3, rpcerror.CodeApplication},
		{"declared of others", "e", RPCOptions{}, &wire.Retry{Retries: 2}, 1, rpcerror.CodeApplication},
		{"declared, asked for others", "e", RPCOptions{RetryErrors: types("KeyError")}, declares, 1, rpcerror.CodeApplication},
		{"declared, asked for more", "eee", RPCOptions{Retries: 3}, declares, 4, ""},
		{"declared, asked for none", "e", RPCOptions{Retries: -1}, declares, 1, rpcerror.CodeApplication},
		{"declared, a loss", "l", RPCOptions{}, declares, 2, ""},
		{"declared, both", "ele", RPCOptions{}, declares, 3, rpcerror.CodeApplication},
		{"declared, a loss too many", "eel", RPCOptions{}, declares, 3, rpcerror.CodeMaybeExecuted},
		{"one budget", "lele", RPCOptions{Retries: 4, RetryErrors: all}, nil, 5, ""},
		{"one budget, an error at its end", "lele", RPCOptions{Retries: 3, RetryErrors: all}, nil, 4, rpcerror.CodeApplication},
		{"one budget, a loss at its end", "elel", RPCOptions{Retries: 3, RetryErrors: all}, nil, 4, rpcerror.CodeMaybeExecuted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				script := &script{world: w, events: test.events, declared: test.declared}
				script.start()
				script.names = resolverAt(t, w, home)
				client := w.client(script.names, Config{Options: test.options})
				h, err := client.Lookup(t.Context(), "counter")
				if err != nil {
					t.Fatal(err)
				}
				_, err = Call[int](t.Context(), h, "add", 7)
				if got := rpcerror.CodeOf(err); got != test.code || err != nil && !ran(err) {
					t.Errorf("got %v, want code %q, and that it ran", err, test.code)
				}
				if got := len(w.ran()); got != test.runs {
					t.Errorf("it ran %d times, want %d", got, test.runs)
				}
			})
		})
	}
}

// script is how runs of "add" with 7 end, one after the other.
type script struct {
	world    *world
	names    *resolver.Local // nil: at first
	events   string
	declared *wire.Retry
}

// start has the next process serve the actor.
func (s *script) start() {
	p := s.world.start(home)
	p.methods = []*wire.Method{{Name: "add", Retries: s.declared.GetRetries()}}
	p.answer = func(*wire.Call) *wire.Reply { return s.answer(p) }
	s.arm(p)
	if s.names != nil {
		s.names.Set("counter", resolver.Endpoint{Address: home, Incarnation: p.incarnation})
	}
}

// arm has the next run be lost, if it is to be.
func (s *script) arm(p *process) {
	if strings.HasPrefix(s.events, "l") {
		p.breaks = map[int]*broken{7: {beforeReply, func() {
			s.events = s.events[1:]
			s.start()
		}}}
	}
}

// answer is the reply of a run that ends with an error, nil of others. It needs the world's lock.
func (s *script) answer(p *process) *wire.Reply {
	if !strings.HasPrefix(s.events, "e") {
		return nil
	}
	s.events = s.events[1:]
	s.arm(p)
	s.world.executed = append(s.world.executed, 7)
	e := &rpcerror.Error{Code: rpcerror.CodeApplication, Message: "too hard", Ran: true, Type: "lessons.TooHard", Bases: []string{"LookupError", "Exception"}}
	reply := &wire.Reply{Error: e.Wire(), Incarnation: p.incarnation}
	reply.Error.Retry = s.declared
	return reply
}

// A call that was given up does not run again.
func TestRetryErrorsOfCancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		script := &script{world: w, events: strings.Repeat("e", 10)}
		script.start()
		w.processes[home].mute = true
		client := w.client(resolverAt(t, w, home), Config{Options: RPCOptions{Retries: 9, RetryErrors: &ErrorFilter{}}})
		h, err := client.Lookup(t.Context(), "counter")
		if err != nil {
			t.Fatal(err)
		}
		f := Go[int](t.Context(), h, "add", 7)
		synctest.Wait()
		f.Cancel()
		w.mu.Lock()
		w.processes[home].mute = false
		w.mu.Unlock()
		w.processes[home].release(1)
		synctest.Wait()
		if _, err := f.Result(t.Context()); !errors.Is(err, &rpcerror.Error{Code: rpcerror.CodeCancelled}) || !ran(err) {
			t.Errorf("got %v, want that it was cancelled and may have run", err)
		}
		if got := w.ran(); !slices.Equal(got, []int{7}) {
			t.Errorf("ran %v, want that once", got)
		}
	})
}

// Handles stay comparable, whatever their options.
func TestHandlesWithFiltersAreComparable(t *testing.T) {
	filter := &ErrorFilter{Match: func(*rpcerror.Error) bool { return true }}
	w := newWorld(t)
	w.start(home)
	client := w.client(resolverAt(t, w, home), Config{})
	h, err := client.Lookup(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := h.With(RPCOptions{RetryErrors: filter}), h.With(RPCOptions{RetryErrors: filter}); a != b {
		t.Error("handles with the same options differ")
	}
}
