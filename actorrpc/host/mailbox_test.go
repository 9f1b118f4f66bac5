package host

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

func TestAMailboxIsBounded(t *testing.T) {
	m := &mailbox{}
	for n := range maxMailbox {
		if !m.push(&call{}) {
			t.Fatalf("call %d was refused, want room for %d", n, maxMailbox)
		}
	}
	if m.push(&call{}) {
		t.Error("one too many was taken")
	}
	given := m.snapshot()[7]
	given.phase = phaseOver
	if !m.push(&call{}) || m.push(&call{}) {
		t.Error("want room for one after one was given up")
	}
	if got := len(m.snapshot()); got != maxMailbox || slices.Contains(m.snapshot(), given) {
		t.Errorf("got %d calls that wait, want %d without the one that was given up", got, maxMailbox)
	}
}

func TestAMailboxKeepsTheOrder(t *testing.T) {
	m := &mailbox{}
	in, out := uint64(0), uint64(0)
	for round := range uint64(60) { // it grows to thousands, moves up and empties
		for range 200 + 10*round {
			in++
			m.push(numbered(in, 0))
		}
		for range 100 + 14*round {
			if out < in {
				out++
				if got := m.pop().in.GetSeq(); got != out {
					t.Fatalf("got call %d, want %d", got, out)
				}
			}
		}
		if got := uint64(len(m.snapshot())); got != in-out {
			t.Fatalf("got %d calls that wait, want %d", got, in-out)
		}
	}
	m.running = 1
	for c := m.pop(); c != nil; c = m.pop() {
		out++
	}
	if in != out || m.running != 0 {
		t.Errorf("got %d of %d calls, %d that run", out, in, m.running)
	}
}

// activeAt notes how many calls a server had when it answered.
type activeAt struct {
	server *Server
	seen   chan int64
}

func (a activeAt) answer(*wire.Reply, [][]byte, bool) { a.seen <- a.server.active.Load() }

// A server that has drained sends its last frame, which means that calls without a
// reply did not run; so a call counts until its reply is on its way.
func TestACallCountsUntilItsReplyIsSent(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	for _, method := range []string{"increment", "no_such"} {
		until(t, "the call before is over", func() bool { return s.active.Load() == 0 })
		in, _ := request(t, "counter", method, 1)
		to := activeAt{s, make(chan int64, 1)}
		c := &call{server: s, in: in, to: to}
		c.answer(s.submit(c, nil), false)
		if got := <-to.seen; got != 1 {
			t.Errorf("%s: got %d calls while it was answered, want itself", method, got)
		}
	}
}

func TestTheMemoryOfWhatWaitsIsBounded(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	c := connect(t, s, "a")
	runs := c.begin("counter", "wait", "runs")
	next(t, l.began)
	if got := s.waiting.Load(); got != 0 {
		t.Errorf("got %d bytes that wait, want none: the only call runs", got)
	}
	waits := c.begin("counter", "echo", make([]byte, 10_000))
	until(t, "the call waits", func() bool { return s.waiting.Load() > 10_000 })
	s.waiting.Add(maxWaitingBytes)
	if err := c.fails(rpcerror.CodeBusy, "counter", "increment", 1); err.Ran {
		t.Errorf("got %+v", err)
	}
	s.waiting.Add(-maxWaitingBytes)
	close(l.gate)
	_, _ = c.result(runs)
	_, _ = c.result(waits)
	c.wants(1, "counter", "increment", 1)
	until(t, "nothing waits or runs", func() bool { return s.waiting.Load() == 0 && s.active.Load() == 0 })
}
