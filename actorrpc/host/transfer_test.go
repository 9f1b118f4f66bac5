package host

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

const mib = 1 << 20

// books is an actor with large arguments and results.
type books struct {
	mu   sync.Mutex
	took []int
}

func (s *books) Take(book []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, len(book))
	return len(book)
}

func (s *books) Give(n int) []byte {
	s.Take(make([]byte, n))
	return bytes.Repeat([]byte{7}, n)
}

func (s *books) all() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.took)
}

// takingParts is a client that takes results in parts.
func takingParts(t *testing.T, s *Server, peer string) *client {
	t.Helper()
	h := hello(peer)
	h.MaxTransferBytes = wire.DefaultMaxMessage
	return handshake(t, dialRaw(t, s), h)
}

// announce announces a call with an argument of a size, and returns its number and payload.
func (c *client) announce(actor string, size int) (seq uint64, payload []byte) {
	c.t.Helper()
	in, buffers := request(c.t, actor, "take", make([]byte, size))
	payload = slices.Concat(append([][]byte{in.Args}, buffers...)...)
	in.TransferBytes, in.ArgsBytes, in.Args = uint64(len(payload)), uint64(len(in.Args)), nil
	return c.sendCall(in), payload
}

// part sends some of a payload, and returns the rest.
func (c *client) part(seq uint64, payload []byte, size int) []byte {
	c.t.Helper()
	size = min(size, len(payload))
	frame, err := wireFrame(&wire.Frame{Kind: &wire.Frame_Part{Part: &wire.Part{Seq: seq}}}, payload[:size])
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.net.Write(frame); err != nil {
		c.t.Fatal(err)
	}
	return payload[size:]
}

// accepted waits until the server asks for the payload of a call.
func (c *client) accepted(seq uint64) {
	c.t.Helper()
	for {
		f := c.receive()
		if f.GetAccept() != nil {
			if got := f.GetAccept().GetSeq(); got != seq {
				c.t.Fatalf("call %d was accepted, want %d", got, seq)
			}
			return
		}
		if f.GetReply() != nil {
			c.t.Fatalf("got %v, want that call %d is accepted", f, seq)
		}
	}
}

// stays has the client send pings until the test ends: it is slow, but not silent.
func (c *client) stays() {
	ping := &wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: 1}}}
	ticker := time.NewTicker(20 * time.Millisecond)
	done := make(chan struct{})
	c.t.Cleanup(func() { close(done) })
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = c.conn.Send(ping, nil, nil)
			case <-done:
				return
			}
		}
	}()
}

// quiet fails if the server sends something before its answer to a ping.
func (c *client) quiet() {
	c.t.Helper()
	c.send(&wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: 1}}})
	if f := c.receive(); f.GetPong() == nil {
		c.t.Fatalf("got %v, want nothing", f)
	}
}

// A call waits for its arguments, and later ones to the same actor of the same caller for it. Others do not.
func TestCallsBehindLargeArguments(t *testing.T) {
	one, two := &books{}, &books{}
	s := started(t, Config{Keepalive: time.Hour}, map[string]any{"one": one, "two": two}, Options{})
	c, other := takingParts(t, s, "a"), takingParts(t, s, "b")
	seq, payload := c.announce("one", 9*mib)
	c.accepted(seq)
	behind := c.begin("one", "take", []byte{1})
	c.wants(2, "two", "take", []byte{1, 2})
	other.wants(3, "one", "take", []byte{1, 2, 3})
	for len(payload) > 0 {
		c.wants(2, "two", "take", []byte{1, 2}) // between the parts
		payload = c.part(seq, payload, 2*mib)
	}
	if got, err := c.result(seq); err != nil || got != int64(9*mib) {
		t.Errorf("got %v, %v; want what was taken", got, err)
	}
	if got, err := c.result(behind); err != nil || got != int64(1) {
		t.Errorf("got %v, %v; want what was taken", got, err)
	}
	if got := one.all(); !slices.Equal(got, []int{3, 9 * mib, 1}) {
		t.Errorf("took %v, want them in the order of the caller's calls", got)
	}
	until(t, "the memory is given back", func() bool { return s.room.Used() == 0 })
}

// What ends a call before its arguments have come gives their memory back, and lets the calls behind it go on.
func TestLargeArgumentsThatDoNotCome(t *testing.T) {
	for name, end := range map[string]func(s *Server, c *client, seq uint64) rpcerror.Code{
		"cancelled": func(_ *Server, c *client, seq uint64) rpcerror.Code {
			c.send(&wire.Frame{Kind: &wire.Frame_Cancel{Cancel: &wire.Cancel{Seq: seq}}})
			return rpcerror.CodeCancelled
		},
		"stalled": func(*Server, *client, uint64) rpcerror.Code { return rpcerror.CodeBusy },
	} {
		t.Run(name, func(t *testing.T) {
			one := &books{}
			s := started(t, Config{Keepalive: time.Second, Patience: time.Second}, map[string]any{"one": one}, Options{})
			c := takingParts(t, s, "a")
			c.stays()
			seq, payload := c.announce("one", 9*mib)
			c.accepted(seq)
			c.part(seq, payload, mib)
			behind := c.begin("one", "take", []byte{1})
			code := end(s, c, seq)
			if err := c.failed(code, seq); err.Ran {
				t.Errorf("%v counts as run", err)
			}
			if got, err := c.result(behind); err != nil || got != int64(1) {
				t.Errorf("got %v, %v; want that the call behind it runs", got, err)
			}
			c.part(seq, payload[mib:], mib) // it was on its way, and is skipped
			c.wants(2, "one", "take", []byte{1, 2})
			until(t, "the memory is given back", func() bool { return s.room.Used() == 0 })
		})
	}
}

// A connection that breaks within the arguments has the call, and those behind it, sent again: each runs once, in order.
func TestLargeArgumentsAfterABreak(t *testing.T) {
	one := &books{}
	s := started(t, Config{Keepalive: time.Hour}, map[string]any{"one": one}, Options{})
	for _, noticed := range []bool{true, false} {
		c := takingParts(t, s, "a")
		c.seq = uint64(2 * len(one.all()))
		seq, payload := c.announce("one", 9*mib)
		c.accepted(seq)
		c.part(seq, payload, mib)
		behind := c.begin("one", "take", []byte{1})
		c.quiet() // both are there
		if noticed {
			c.net.Close()
			until(t, "the server knows", func() bool { return s.connectionCount() == 0 })
		}
		again := takingParts(t, s, "a")
		in, _ := request(t, "one", "take", make([]byte, 9*mib))
		in.Seq, in.Attempt, in.TransferBytes, in.ArgsBytes, in.Args = seq, 1, uint64(len(payload)), uint64(len(in.Args)), nil
		again.sendCall(in)
		again.accepted(seq)
		small, _ := request(t, "one", "take", []byte{1})
		small.Seq, small.Attempt = behind, 1
		again.sendCall(small)
		if !noticed {
			again.quiet()
			c.net.Close()
			until(t, "the server knows", func() bool { return s.connectionCount() == 1 })
		}
		for len(payload) > 0 {
			payload = again.part(seq, payload, 2*mib)
		}
		for n, want := range map[uint64]int64{seq: 9 * mib, behind: 1} {
			if got, err := again.result(n); err != nil || got != want {
				t.Errorf("call %d: got %v, %v; want %d", n, got, err, want)
			}
		}
		again.net.Close()
		until(t, "the server knows", func() bool { return s.connectionCount() == 0 })
	}
	if got := one.all(); !slices.Equal(got, []int{9 * mib, 1, 9 * mib, 1}) {
		t.Errorf("took %v, want each once, in order", got)
	}
	until(t, "the memory is given back", func() bool { return s.room.Used() == 0 })
}

// Of large arguments there are so many at once; others wait, and small calls do not wait for them.
func TestMemoryForLargeArguments(t *testing.T) {
	s := started(t, Config{TransferMemory: 20 * mib, Keepalive: time.Hour}, map[string]any{"one": &books{}, "two": &books{}}, Options{})
	c, other := takingParts(t, s, "a"), takingParts(t, s, "b")
	first, payload := c.announce("one", 15*mib)
	c.accepted(first)
	second, rest := other.announce("two", 100*mib) // larger than all of it
	other.quiet()                                  // it waits, before the next one arrives on another connection
	third, last := c.announce("two", 9*mib)
	c.quiet()
	if used := s.room.Used(); used > 20*mib {
		t.Errorf("%d bytes are taken, of %d", used, 20*mib)
	}
	give := func(c *client, seq uint64, payload []byte) {
		t.Helper()
		want := int64(len(payload) / mib)
		for len(payload) > 0 {
			payload = c.part(seq, payload, mib)
		}
		if got, err := c.result(seq); err != nil || got.(int64)/mib != want {
			t.Errorf("call %d: got %v, %v; want about %d MiB", seq, got, err, want)
		}
	}
	give(c, first, payload)
	other.accepted(second)
	c.quiet()
	give(other, second, rest)
	c.accepted(third)
	give(c, third, last)
}

// Large results are kept until their callers have them, so many at once: the method that returns the next waits.
func TestMemoryForLargeResults(t *testing.T) {
	one := &books{}
	s := started(t, Config{TransferMemory: 20 * mib, Keepalive: time.Hour}, map[string]any{"one": one}, Options{})
	c, other := takingParts(t, s, "a"), takingParts(t, s, "b")
	take := func(c *client, seq uint64, size int) {
		t.Helper()
		r, _ := c.await(seq)
		if r.GetTransferBytes() < uint64(size) || len(r.GetResult()) > 0 || r.GetError() != nil {
			t.Fatalf("got %v, want the announcement of a result", r)
		}
		c.conn.Expect(seq, r.GetTransferBytes(), time.Hour, func() {})
		c.send(&wire.Frame{Kind: &wire.Frame_Accept{Accept: &wire.Accept{Seq: seq}}})
		for {
			f, payload, err := c.conn.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if f.GetPart() != nil && len(payload) > 0 {
				if n := bytes.Count(payload[0], []byte{7}); n != size {
					t.Errorf("got %d bytes of the result, want %d", n, size)
				}
				return
			}
		}
	}
	release := func(c *client, seq uint64) {
		c.send(&wire.Frame{Kind: &wire.Frame_Release{Release: &wire.Release{Seq: seq}}})
	}
	first := c.begin("one", "give", 15*mib)
	take(c, first, 15*mib)
	second := other.begin("one", "give", 9*mib)
	until(t, "both have run", func() bool { return len(one.all()) == 2 })
	other.quiet()
	release(c, first)
	take(other, second, 9*mib)
	other.net.Close() // it did not report that it has the result, so it may ask again
	until(t, "the server knows", func() bool { return s.connectionCount() == 1 })
	again := takingParts(t, s, "b")
	in, _ := request(t, "one", "give", 9*mib)
	in.Seq, in.Attempt = second, 1
	again.sendCall(in)
	take(again, second, 9*mib)
	release(again, second)
	again.quiet()
	if got := one.all(); len(got) != 2 {
		t.Errorf("it ran %d times, want twice", len(got))
	}
	until(t, "the memory is given back", func() bool { return s.kept.Used() == 0 && s.active.Load() == 0 })
}

// A caller that does not take its result loses it to others, after a while, and is told so.
func TestLargeResultThatIsNotTaken(t *testing.T) {
	s := started(t, Config{TransferMemory: 10 * mib, Keepalive: time.Second, Patience: time.Second}, map[string]any{"one": &books{}}, Options{})
	c, other := takingParts(t, s, "a"), takingParts(t, s, "b")
	c.stays()
	other.stays()
	first := c.begin("one", "give", 9*mib)
	if r, _ := c.await(first); r.GetTransferBytes() == 0 {
		t.Fatalf("got %v, want an announcement", r)
	}
	second := other.begin("one", "give", 9*mib)
	if r, _ := other.await(second); r.GetTransferBytes() == 0 {
		t.Fatalf("got %v, want an announcement", r)
	}
	c.send(&wire.Frame{Kind: &wire.Frame_Accept{Accept: &wire.Accept{Seq: first}}})
	if err := c.failed(rpcerror.CodeMaybeExecuted, first); !err.Ran {
		t.Errorf("%v counts as not run", err)
	}
}

// A client of before that takes no parts gets what it takes in a frame.
func TestLargeResultForAnOlderClient(t *testing.T) {
	s := started(t, Config{Keepalive: time.Hour}, map[string]any{"one": &books{}}, Options{})
	c := connect(t, s, "old")
	if got, err := c.call("one", "give", 20*mib); err != nil || len(got.([]byte)) != 20*mib {
		t.Errorf("%v; want the result", err)
	}
	if err := c.fails(rpcerror.CodeTooLarge, "one", "give", 65*mib); !err.Ran {
		t.Errorf("%v counts as not run", err)
	}
}

func TestHostileTransfers(t *testing.T) {
	s := started(t, Config{MaxMessageBytes: 20 * mib, Keepalive: time.Hour}, map[string]any{"one": &books{}}, Options{})
	c := takingParts(t, s, "large")
	seq, _ := c.announce("one", 21*mib)
	if err := c.failed(rpcerror.CodeTooLarge, seq); err.Ran {
		t.Errorf("%v counts as run", err)
	}
	for name, in := range map[string]*wire.Call{
		"more buffers than bytes":    {Actor: "one", Method: "take", Seq: 1, TransferBytes: 9 * mib, ArgsBytes: 9 * mib, BufferSizes: []uint64{1}},
		"more arguments than bytes":  {Actor: "one", Method: "take", Seq: 1, TransferBytes: 9 * mib, ArgsBytes: 10 * mib},
		"no number":                  {Actor: "one", Method: "take", TransferBytes: 9 * mib, ArgsBytes: 9 * mib},
		"arguments beside the parts": {Actor: "one", Method: "take", Seq: 1, TransferBytes: 9 * mib, ArgsBytes: 9 * mib, Args: []byte{1}},
	} {
		c := takingParts(t, s, name)
		c.send(&wire.Frame{Kind: &wire.Frame_Call{Call: in}})
		if err := c.closeError(); err.Code != rpcerror.CodeMalformed {
			t.Errorf("%s: got %v, want that it is malformed", name, err)
		}
	}
	grows := takingParts(t, s, "grows")
	seq, payload := grows.announce("one", 9*mib)
	grows.accepted(seq)
	grows.part(seq, append(payload, 1), 10*mib)
	if err := grows.closeError(); err.Code != rpcerror.CodeMalformed {
		t.Errorf("got %v, want that more than was announced is malformed", err)
	}
	until(t, "the memory is given back", func() bool { return s.room.Used() == 0 })
}

// Shutting down rejects calls whose arguments have not come, and waits for results that are on their way.
func TestShutdownWithinTransfers(t *testing.T) {
	one := &books{}
	s := started(t, Config{Keepalive: time.Hour}, map[string]any{"one": one}, Options{})
	c := takingParts(t, s, "a")
	result := c.begin("one", "give", 9*mib)
	if r, _ := c.await(result); r.GetTransferBytes() == 0 {
		t.Fatalf("got %v, want an announcement", r)
	}
	arguments, _ := c.announce("one", 9*mib)
	c.accepted(arguments)
	down := make(chan error)
	go func() { down <- s.Shutdown(t.Context()) }()
	if err := c.failed(rpcerror.CodeStopping, arguments); err.Ran {
		t.Errorf("%v counts as run", err)
	}
	select {
	case err := <-down:
		t.Fatalf("it shut down before the result was sent: %v", err)
	default:
	}
	c.send(&wire.Frame{Kind: &wire.Frame_Release{Release: &wire.Release{Seq: result}}})
	if err := c.closeError(); err.Code != rpcerror.CodeStopping {
		t.Errorf("got %v, want that it stops", err)
	}
	c.net.Close()
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// wireFrame is a frame as bytes.
func wireFrame(f *wire.Frame, body []byte) ([]byte, error) {
	head, err := proto.Marshal(f)
	if err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	return slices.Concat(out, head, body), nil
}

// Calls that wait when their connection breaks may come again at once, by another one: they are new, and the
// end of the earlier ones is no answer to them.
func TestCallsOfABrokenConnectionThatComeAgain(t *testing.T) {
	one := &books{}
	s := started(t, Config{Keepalive: time.Hour}, map[string]any{"one": one}, Options{})
	c := takingParts(t, s, "a")
	seq, _ := c.announce("one", 9*mib)
	c.accepted(seq)
	behind := c.begin("one", "take", []byte{1})
	c.quiet() // it has come
	broken := s.ledger.running(s.ledger.sessions["a"], seq).from
	cut := broken.cutOff()
	if len(cut) != 2 {
		t.Errorf("%d calls are cut off, want both", len(cut))
	}
	again := takingParts(t, s, "a")
	in, buffers := request(t, "one", "take", []byte{1})
	in.Seq, in.Attempt = behind, 2
	again.sendCall(in, buffers...)
	again.quiet()
	answerAll(cut)
	broken.advance()
	if got, err := again.result(behind); err != nil || got != int64(1) {
		t.Errorf("got %v, %v; want what was taken", got, err)
	}
	if got := one.all(); !slices.Equal(got, []int{1}) {
		t.Errorf("took %v, want it once", got)
	}
}
