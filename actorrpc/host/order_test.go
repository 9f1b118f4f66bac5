package host

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// A connection that broke may still be read when its caller is back: what it has to
// say is old, and must not take answers away from the new one.
func TestWhatABrokenConnectionStillHasIsIgnored(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	before, after := connect(t, s, "a"), connect(t, s, "a")
	again, _ := request(t, "counter", "wait", "x")
	again.Seq, again.Attempt = 1, 1
	after.sendCall(again)
	if got := next(t, l.began); got != "x" {
		t.Fatalf("got %q", got)
	}
	before.begin("counter", "wait", "x")
	before.send(&wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: 1}}})
	for before.receive().GetPong() == nil {
	}
	close(l.gate)
	if got, err := after.result(1); err != nil || got != "x" {
		t.Errorf("got %v, %v", got, err)
	}
}

// A call that was refused does not run when an old copy of it turns up.
func TestAnOldCopyOfARefusedCallDoesNotRun(t *testing.T) {
	l := newLedger(maxKept)
	s := l.open("a", time.Now())
	refused := numbered(1, 0)
	refused.in.Attempt = 1
	if v, _ := l.begin(s, refused, discarded{}); v != dispositionNew {
		t.Fatalf("got %s, want new", v)
	}
	failure := &rpcerror.Error{Code: rpcerror.CodeStale}
	l.finish(refused.entry, &answer{reply: &wire.Reply{Error: failure.Wire()}}, 0, nil)
	if v, _ := l.begin(s, numbered(1, 0), discarded{}); v != dispositionOld {
		t.Errorf("the old copy: got %s, want %s", v, dispositionOld)
	}
	again := numbered(1, 0)
	again.in.Attempt = 2
	if v, _ := l.begin(s, again, discarded{}); v != dispositionNew {
		t.Errorf("the next: got %s, want new", v)
	}
}
