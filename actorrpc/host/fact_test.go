package host

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

func panicOrExit(how string) {
	if how == "exit" {
		runtime.Goexit()
	}
	panic(how)
}

func TestFact24StatePersistsAcrossCalls(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	c := connect(t, s, "a")
	for want := 2; want <= 6; want += 2 {
		c.wants(want, "counter", "increment", 2)
	}
	connect(t, s, "b").wants(7, "counter", "increment", 1)
}

func TestFact25CallsOfOneCallerRunInOrder(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l, "other": l}, Options{})
	c := connect(t, s, "a")
	const calls = 2000
	for n := range calls {
		c.begin([]string{"counter", "other"}[n%2], "note", n) // one object, one mailbox
	}
	for n := range calls {
		if _, err := c.result(uint64(n + 1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Seen(); len(got) != calls || !slices.IsSorted(got) {
		t.Errorf("got %d calls, in order: %v; want all %d in order", len(got), slices.IsSorted(got), calls)
	}
}

func TestFact25ConcurrencyIsWhatIsSaid(t *testing.T) {
	tests := []struct {
		name    string
		options Options
		want    int
	}{
		{"one unless more is said", Options{}, 1},
		{"as many as are said", Options{MaxConcurrency: 3}, 3},
		{"of a group", Options{Groups: map[string]int{"slow": 2}, Methods: map[string]MethodOptions{"wait": {Group: "slow"}}}, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLesson()
			s := started(t, Config{}, map[string]any{"a": l}, test.options)
			c := connect(t, s, "a")
			const calls = 7
			for range calls {
				c.begin("a", "wait", "x")
			}
			for range test.want {
				next(t, l.began)
			}
			if test.options.Groups != nil {
				c.wants(1, "a", "increment", 1) // beside the group
			}
			close(l.gate)
			for n := range calls {
				_, _ = c.result(uint64(n + 1))
			}
			if got := int(l.most.Load()); got != test.want {
				t.Errorf("got %d at once, want %d", got, test.want)
			}
		})
	}
}

func TestFact26WhatDoesNotFitDoesNotRun(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{Methods: map[string]MethodOptions{"note": {Params: []string{"n"}}}})
	c := connect(t, s, "a")
	tests := []struct {
		name, actor, method string
		args                []any
		code                rpcerror.Code
		message, argument   string
		near                []string
	}{
		{"too many", "counter", "increment", []any{1, 2, 3}, rpcerror.CodeBadArguments, "takes 1 argument, got 3", "", nil},
		{"too few", "counter", "Increment", nil, rpcerror.CodeBadArguments, "takes 1 argument, got 0", "", nil},
		{"too few of a variadic one", "counter", "sum", nil, rpcerror.CodeBadArguments, "takes at least 1 argument, got 0", "", nil},
		{"of another type", "counter", "increment", []any{"x"}, rpcerror.CodeBadArguments, "want int, got string", "args[0]", nil},
		{"unknown actor", "conter", "increment", []any{1}, rpcerror.CodeUnknownActor, `no actor "conter" is here`, "", []string{"counter"}},
		{"unknown method", "counter", "incremnt", []any{1}, rpcerror.CodeUnknownMethod, `no method "incremnt"`, "", []string{"increment"}},
		{"underscore", "counter", "_increment", []any{1}, rpcerror.CodeUnknownMethod, `no method "_increment"; underscore names are not callable`, "", nil},
		{"not exported", "counter", "lower", nil, rpcerror.CodeUnknownMethod, `no method "lower"`, "", []string{}},
		{"of another form", "counter", "three", nil, rpcerror.CodeUnknownMethod, `no method "three"`, "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := c.fails(test.code, test.actor, test.method, test.args...)
			if err.Message != test.message || err.Argument != test.argument || err.Ran || !slices.Equal(err.Suggestions, test.near) {
				t.Errorf("got %q at %q, ran %v, near %q\nwant %q at %q, false, %q", err.Message, err.Argument, err.Ran, err.Suggestions, test.message, test.argument, test.near)
			}
			if err.Actor != test.actor || err.Method != test.method {
				t.Errorf("got %s.%s, want %s.%s", err.Actor, err.Method, test.actor, test.method)
			}
		})
	}
	c.wants(1, "counter", "increment", 1) // nothing ran, and the server goes on
}

func TestFact27ErrorsReachTheCallerAndTheActorLivesOn(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	c := connect(t, s, "a")
	err := c.fails(rpcerror.CodeApplication, "counter", "fail", "no such lesson")
	if !err.Ran || err.Message != "teach: no such lesson" || err.Type != "*fmt.wrapError" {
		t.Errorf("got %+v", err)
	}
	if err.Cause == nil || err.Cause.Message != "no such lesson" || err.Cause.Type != "*errors.errorString" {
		t.Errorf("cause: got %+v", err.Cause)
	}
	err = c.fails(rpcerror.CodeApplication, "counter", "panic")
	if !err.Ran || err.Message != "panic: no more" || !strings.Contains(err.Traceback, "(*lesson).Panic") {
		t.Errorf("got %+v, want the panic with its stack", err)
	}
	err = c.fails(rpcerror.CodeInternal, "counter", "leave", "exit")
	if !err.Ran {
		t.Errorf("got %+v, want that it ran", err)
	}
	err = c.fails(rpcerror.CodeEncoding, "counter", "odd")
	if !err.Ran || err.Argument != "result.deep[1]" {
		t.Errorf("got %+v, want the path of the channel", err)
	}
	c.wants(1, "counter", "increment", 1)
}

func TestFact28ACallThatIsSentAgainRunsOnce(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	first := connect(t, s, "a")
	first.wants(1, "counter", "increment", 1)
	slow := first.begin("counter", "wait", "x")
	next(t, l.began)
	first.net.Close()

	again := connect(t, s, "a")
	resend := func(seq uint64, method string, args ...any) uint64 {
		in, buffers := request(t, "counter", method, args...)
		in.Seq, in.Attempt = seq, 1
		return again.sendCall(in, buffers...)
	}
	if got, err := again.result(resend(1, "increment", 1)); err != nil || got != int64(1) {
		t.Errorf("got %v, %v, want the answer of the first time, 1", got, err)
	}
	resend(slow, "wait", "x") // it still runs
	close(l.gate)
	if got, err := again.result(slow); err != nil || got != "x" {
		t.Errorf("got %v, %v, want the answer of the one that ran", got, err)
	}
	again.seq, again.ack = slow, slow
	again.wants(3, "counter", "increment", 2)
	err := again.failed(rpcerror.CodeMaybeExecuted, resend(1, "increment", 1)) // acknowledged, so it is not known any more
	if !err.Ran || err.Message != "the connection broke after the call was sent: it may have run" {
		t.Errorf("got %+v", err)
	}
	if l.count != 3 {
		t.Errorf("got a count of %d, want 3", l.count)
	}
}

func TestFact28ARefusedCallMayBeSentAgain(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	c := connect(t, s, "a")
	in, _ := request(t, "counter", "increment", 1)
	in.Incarnation = "actor-aaaaaaaaaaaaaaaaaaaaaaaaaa"
	seq := c.sendCall(in)
	if err := c.failed(rpcerror.CodeStale, seq); err.Ran || err.Message != "another incarnation is here" {
		t.Errorf("got %+v", err)
	}
	in.Incarnation = ""
	if got, err := c.result(c.sendCall(in)); err != nil || got != int64(1) {
		t.Errorf("got %v, %v, want 1", got, err)
	}
	if got, err := c.result(c.sendCall(in)); err != nil || got != int64(1) || l.count != 1 {
		t.Errorf("got %v, %v and a count of %d, want 1 and 1", got, err, l.count)
	}
}

func TestFact31ANewIncarnationIsNoticed(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	c := connect(t, s, "a")
	old, _ := c.await(c.begin("counter", "increment", 1))
	if err := s.Unregister(t.Context(), "counter"); err != nil {
		t.Fatal(err)
	}
	_ = c.fails(rpcerror.CodeUnknownActor, "counter", "increment", 1)
	incarnation, err := s.Register("counter", l, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if incarnation == old.GetIncarnation() || !strings.HasPrefix(incarnation, "actor-") || len(incarnation) != 32 {
		t.Errorf("got incarnation %q after %q", incarnation, old.GetIncarnation())
	}
	in, _ := request(t, "counter", "increment", 1)
	in.Incarnation = old.GetIncarnation()
	_ = c.failed(rpcerror.CodeStale, c.sendCall(in))
	in, _ = request(t, "counter", "increment", 1)
	in.Incarnation = incarnation
	if got, err := c.result(c.sendCall(in)); err != nil || got != int64(2) {
		t.Errorf("got %v, %v, want 2", got, err)
	}
}

// After the last frame of a server that shuts down its clients know of each call
// whether it ran: if it has no reply it did not.
func TestFact28AShutdownLosesNoReply(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	const callers = 8
	var returned atomic.Int64
	var all sync.WaitGroup
	half := make(chan struct{})
	for n := range callers {
		c := connect(t, s, string(rune('a'+n)))
		in, _ := request(t, "counter", "increment", 1)
		room := make(chan struct{}, 200)
		all.Go(func() {
			for seq := uint64(1); ; seq++ {
				room <- struct{}{}
				call := &wire.Call{Actor: in.GetActor(), Method: in.GetMethod(), Args: in.GetArgs(), Seq: seq}
				if c.conn.Send(callFrame(call), nil, nil) != nil {
					return // the server has left
				}
			}
		})
		all.Go(func() {
			last := false
			for {
				f, _, err := c.conn.Receive()
				switch {
				case err != nil:
					if !last {
						t.Errorf("the connection ended without a last frame: %v", err)
					}
					c.net.Close()
					for len(room) > 0 { // the sender is to find out
						<-room
					}
					return
				case f.GetClose() != nil:
					last = true
					continue
				case last:
					t.Errorf("got %v after the last frame", f)
				case f.GetReply() == nil: // a Ping
					continue
				case f.GetReply().GetError() == nil:
					if returned.Add(1) == 2000 {
						close(half)
					}
				case f.GetReply().GetError().GetRan():
					t.Errorf("got %v", f)
				}
				<-room
			}
		})
	}
	<-half
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if got := returned.Load(); int(got) != l.count {
		t.Errorf("got %d replies of %d calls that ran", got, l.count)
	}
}

func TestUnregisterRefusesWhatWaits(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l, "stays": l}, Options{})
	c := connect(t, s, "a")
	runs := c.begin("counter", "wait", "runs")
	waits, stays := c.begin("counter", "wait", "waits"), c.begin("stays", "increment", 1)
	next(t, l.began)
	c.send(&wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: 1}}})
	for c.receive().GetPong() == nil { // the calls are in the mailbox
	}
	if err := s.Unregister(t.Context(), "counter"); err != nil {
		t.Fatal(err)
	}
	if err := c.failed(rpcerror.CodeStopping, waits); err.Ran {
		t.Errorf("got %+v, want that it did not run", err)
	}
	close(l.gate)
	if got, err := c.result(runs); err != nil || got != "runs" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := c.result(stays); err != nil || got != int64(1) {
		t.Errorf("the other name: got %v, %v", got, err)
	}
}

func TestShutdownFinishesWhatRuns(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	c := connect(t, s, "a")
	runs := c.begin("counter", "wait", "runs")
	waits := c.begin("counter", "increment", 1)
	next(t, l.began)
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	if err := c.failed(rpcerror.CodeStopping, waits); err.Ran || err.Message != "the server is shutting down" {
		t.Errorf("got %+v", err)
	}
	if err := c.fails(rpcerror.CodeStopping, "counter", "increment", 1); err.Ran {
		t.Errorf("got %+v", err)
	}
	close(l.gate)
	if got, err := c.result(runs); err != nil || got != "runs" {
		t.Errorf("got %v, %v, want the result of what ran", got, err)
	}
	if err := c.closeError(); err.Code != rpcerror.CodeStopping {
		t.Errorf("got %+v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestShutdownGivesUpAtItsDeadline(t *testing.T) {
	l := newLesson()
	defer close(l.gate)
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Register("a", l, Options{MaxConcurrency: 2}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := connect(t, s, "a")
	polite, stubborn := c.begin("a", "wait", "x"), c.begin("a", "stubborn")
	next(t, l.began)
	next(t, l.began)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("got no error, want that a call did not finish")
	}
	for _, seq := range []uint64{polite, stubborn} {
		if err := c.failed(rpcerror.CodeStopping, seq); !err.Ran {
			t.Errorf("call %d: got %+v, want that it ran", seq, err)
		}
	}
}
