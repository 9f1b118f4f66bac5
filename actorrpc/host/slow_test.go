package host

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

const large = 1 << 20

// library has large results.
type library struct{ lent atomic.Int64 }

func (l *library) Book() []byte {
	l.lent.Add(1)
	return make([]byte, large)
}

func (*library) Page() int { return 1 }

// lagging is a client that asked for more than what waits to be written, and has read nothing.
func lagging(t *testing.T, s *Server, l *library) (c *client, asked int) {
	t.Helper()
	c = connect(t, s, "slow")
	asked = 2*wire.PostLimit/large + 50 // as much is being written as waits
	for range asked {
		c.begin("library", "book")
	}
	until(t, "all calls are there", func() bool { return l.lent.Load() == int64(asked) })
	return c, asked
}

// A client that reads nothing holds up no other, and gets everything once it reads.
func TestSlowReaderBlocksNoOthers(t *testing.T) {
	l := &library{}
	s := started(t, Config{Keepalive: time.Hour}, map[string]any{"library": l}, Options{})
	c, asked := lagging(t, s, l)
	connect(t, s, "other").wants(1, "library", "page") // after all the others, one at a time
	if s.active.Load() == 0 {
		t.Error("replies that are late do not count as unanswered")
	}
	for seq := range asked {
		got, err := c.result(uint64(seq + 1))
		if err != nil || len(got.([]byte)) != large {
			t.Fatalf("call %d: %v; want its result", seq+1, err)
		}
	}
	c.wants(1, "library", "page")
	until(t, "nothing counts as unanswered", func() bool { return s.active.Load() == 0 })
}

// Of what waits for such a client only so much is kept. It is told what it will not get.
func TestWhatASlowReaderLosesIsReported(t *testing.T) {
	l := &library{}
	s := started(t, Config{Keepalive: time.Hour}, map[string]any{"library": l}, Options{})
	s.ledger.limit = 10 * large
	c, asked := lagging(t, s, l)
	connect(t, s, "other").wants(1, "library", "page")
	lost := 0
	for seq := range asked {
		if _, err := c.result(uint64(seq + 1)); err != nil {
			lost++
			if err.Code != rpcerror.CodeMaybeExecuted || !err.Ran {
				t.Fatalf("call %d: %+v; want that it may have run", seq+1, err)
			}
		}
	}
	if lost == 0 || lost > asked-wire.PostLimit/large {
		t.Errorf("%d of %d results were lost; want some, of those that did not wait to be written", lost, asked)
	}
}

// A server that stops says that what it did not answer did not run: not while replies are late.
func TestCloseToASlowReader(t *testing.T) {
	s, err := New(Config{Keepalive: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	l := &library{}
	if _, err := s.Register("library", l, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, asked := lagging(t, s, l)
	connect(t, s, "other").wants(1, "library", "page") // all has run
	stopped := make(chan error, 1)
	go func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		stopped <- s.Shutdown(over)
	}()
	until(t, "it gives up", func() bool {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.closed
	})
	replies := 0
	for {
		f, _, err := c.conn.Receive()
		if err != nil {
			break
		}
		if f.GetReply() != nil {
			replies++
		}
		if f.GetClose() != nil && replies < asked {
			t.Fatalf("the last frame came after %d of %d replies", replies, asked)
		}
	}
	if err := <-stopped; err == nil {
		t.Error("it stopped as if all replies had been read")
	}
}
