package host

import (
	"context"
	"testing"

	"github.com/fray-ml/fray/actorrpc/internal/callchain"
)

// keeper shows the context of its method.
type keeper struct {
	given chan context.Context
	gate  chan struct{}
}

func (k *keeper) Keep(ctx context.Context) {
	k.given <- ctx
	<-k.gate
}

func (k *keeper) Group(ctx context.Context) string { return FromContext(ctx).Group }

func TestWhatAMethodHoldsUp(t *testing.T) {
	k := &keeper{given: make(chan context.Context), gate: make(chan struct{})}
	s := started(t, Config{}, nil, Options{})
	options := Options{Groups: map[string]int{"side": 1}, Methods: map[string]MethodOptions{"Group": {Group: "side"}}}
	incarnation, err := s.Register("keeper", k, options)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s, "a")
	seq := c.begin("keeper", "keep")
	ctx := <-k.given
	run := callchain.Own(ctx)
	if run == nil {
		t.Fatal("the method's context has no run")
	}
	if peer, n := run.Caller(); peer != "a" || n != seq {
		t.Errorf("the caller is %s with call %d, want a with %d", peer, n, seq)
	}
	if callchain.Own(context.WithoutCancel(ctx)) != nil || callchain.Of(context.WithoutCancel(ctx)) != run || callchain.Of(t.Context()) != nil {
		t.Error("a context that outlasts the method is its own, or of no method; want of it and not its own")
	}
	self := callchain.Call{Process: s.peer, Actor: "keeper", Method: "Keep"}
	tests := []struct {
		name   string
		change func(to *callchain.Call)
		want   bool
	}{
		{"itself", func(*callchain.Call) {}, true},
		{"by the name on the wire", func(to *callchain.Call) { to.Method = "keep" }, true},
		{"with its incarnation", func(to *callchain.Call) { to.Incarnation = incarnation }, true},
		{"another process", func(to *callchain.Call) { to.Process = "another" }, false},
		{"another incarnation", func(to *callchain.Call) { to.Incarnation = "actor-0" }, false},
		{"some process, with its incarnation", func(to *callchain.Call) { to.Process, to.Incarnation = "", incarnation }, true},
		{"some process", func(to *callchain.Call) { to.Process = "" }, false},
		{"another actor", func(to *callchain.Call) { to.Actor = "kepper" }, false},
		{"no method", func(to *callchain.Call) { to.Method = "kep" }, false},
		{"another group", func(to *callchain.Call) { to.Method = "group" }, false},
	}
	for _, test := range tests {
		to := self
		test.change(&to)
		if got := run.HoldsUp(to); got != test.want {
			t.Errorf("%s: it is held up: %t, want %t", test.name, got, test.want)
		}
	}
	c.wants("side", "keeper", "group")
	s.stopping.Store(true)
	if run.HoldsUp(self) {
		t.Error("a server that stops, which refuses calls, holds them up")
	}
	s.stopping.Store(false)
	close(k.gate)
	if _, err := c.result(seq); err != nil {
		t.Fatal(err)
	}
	if run.HoldsUp(self) {
		t.Error("a method that has returned holds calls up")
	}
}
