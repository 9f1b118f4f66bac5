package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// patience is how long tests wait for what is to happen: the machines are slow.
const patience = 5 * time.Minute

// lesson is an actor whose methods show what the server does.
type lesson struct {
	mu     sync.Mutex
	count  int
	seen   []int
	inside atomic.Int32
	most   atomic.Int32
	gate   chan struct{} // Wait returns when it is closed
	began  chan string   // told by Wait
}

func newLesson() *lesson {
	return &lesson{gate: make(chan struct{}), began: make(chan string, 1000)}
}

func (l *lesson) Increment(by int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count += by
	return l.count
}

func (l *lesson) Note(_ context.Context, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, n)
	return nil
}

func (l *lesson) Seen() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

func (l *lesson) Echo(data []byte) []byte { return data }

func (l *lesson) Fail(text string) error {
	return fmt.Errorf("teach: %w", errors.New(text))
}

func (l *lesson) Panic() { panic("no more") }

func (l *lesson) Leave(t string) { panicOrExit(t) }

func (l *lesson) Wait(ctx context.Context, name string) (string, error) {
	l.inside.Add(1)
	defer l.inside.Add(-1)
	for most := l.most.Load(); l.inside.Load() > most; most = l.most.Load() {
		l.most.CompareAndSwap(most, l.inside.Load())
	}
	l.began <- name
	select {
	case <-l.gate:
		return name, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (l *lesson) Stubborn() string {
	l.began <- "stubborn"
	<-l.gate
	return "done"
}

func (l *lesson) Who(ctx context.Context) map[string]string {
	c := FromContext(ctx)
	return map[string]string{"actor": c.Actor, "method": c.Method, "caller": c.Caller, "namespace": c.Namespace, "incarnation": c.Incarnation}
}

func (l *lesson) Left(ctx context.Context) float64 {
	end, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return time.Until(end).Seconds()
}

func (l *lesson) Odd() any { return map[string]any{"deep": []any{1, make(chan int)}} }

func (l *lesson) Sum(first int, more ...int) int {
	for _, n := range more {
		first += n
	}
	return first
}

func (l *lesson) lower() int { return 0 }

func (l *lesson) Three() (int, int, error) { return 0, l.lower(), nil }

// started is a server that listens, and ends with the test.
func started(t testing.TB, cfg Config, actors map[string]any, options Options) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range actors {
		if _, err := s.Register(name, value, options); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(end); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client speaks frames, one call after the other or many at once.
type client struct {
	t    testing.TB
	conn *wire.Conn
	net  net.Conn
	seq  uint64
	ack  uint64
	// answers that came while another was waited for
	early map[uint64]answer
	hello *wire.Handshake
}

func hello(peer string) *wire.Handshake {
	return &wire.Handshake{Version: wire.Version, Peer: peer, MaxMessageBytes: wire.MaxFrame, Language: "go"}
}

func dialRaw(t testing.TB, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func connect(t testing.TB, s *Server, peer string) *client {
	t.Helper()
	return handshake(t, dialRaw(t, s), hello(peer))
}

func handshake(t testing.TB, c net.Conn, h *wire.Handshake) *client {
	t.Helper()
	if _, err := c.Write([]byte(wire.Preface)); err != nil {
		t.Fatal(err)
	}
	out := &client{t: t, net: c, conn: wire.NewConn(c, 2*wire.MaxFrame), early: map[uint64]answer{}}
	out.send(&wire.Frame{Kind: &wire.Frame_Handshake{Handshake: h}})
	f := out.receive()
	if out.hello = f.GetHandshake(); out.hello == nil {
		t.Fatalf("got %v, want a Handshake", f)
	}
	return out
}

func (c *client) send(f *wire.Frame, buffers ...[]byte) {
	c.t.Helper()
	if err := c.conn.Send(f, buffers, nil); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) receive() *wire.Frame {
	c.t.Helper()
	f, _, err := c.conn.Receive()
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// request is a call of arguments.
func request(t testing.TB, actor, method string, args ...any) (*wire.Call, [][]byte) {
	t.Helper()
	data, buffers, err := codec.EncodeArgs(codec.Msgpack, args, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := &wire.Call{Actor: actor, Method: method, Args: data, Codec: wire.Codec_CODEC_MSGPACK}
	for _, b := range buffers {
		in.BufferSizes = append(in.BufferSizes, uint64(len(b)))
	}
	return in, buffers
}

// begin sends a call and returns its number.
func (c *client) begin(actor, method string, args ...any) uint64 {
	c.t.Helper()
	in, buffers := request(c.t, actor, method, args...)
	return c.sendCall(in, buffers...)
}

func (c *client) sendCall(in *wire.Call, buffers ...[]byte) uint64 {
	c.t.Helper()
	if in.Seq == 0 {
		c.seq++
		in.Seq = c.seq
	}
	in.Acked = c.ack
	c.send(&wire.Frame{Kind: &wire.Frame_Call{Call: in}}, buffers...)
	return in.Seq
}

// await is the reply to a call.
func (c *client) await(seq uint64) (*wire.Reply, [][]byte) {
	c.t.Helper()
	for {
		if a, ok := c.early[seq]; ok {
			delete(c.early, seq)
			return a.reply, a.buffers
		}
		f, buffers, err := c.conn.Receive()
		if err != nil {
			c.t.Fatalf("await call %d: %v", seq, err)
		}
		if r := f.GetReply(); r != nil {
			c.early[r.GetSeq()] = answer{r, buffers}
		}
	}
}

// call is the result of a call, or its error.
func (c *client) call(actor, method string, args ...any) (any, *rpcerror.Error) {
	c.t.Helper()
	return c.result(c.begin(actor, method, args...))
}

func (c *client) result(seq uint64) (any, *rpcerror.Error) {
	c.t.Helper()
	r, buffers := c.await(seq)
	if e := rpcerror.FromWire(r.GetError()); e != nil {
		return nil, e
	}
	var out any
	if err := codec.DecodeResult(codec.Kind(r.GetCodec()), r.GetResult(), buffers, 0, &out); err != nil {
		c.t.Fatal(err)
	}
	return out, nil
}

// wants fails unless a call has a result.
func (c *client) wants(want any, actor, method string, args ...any) {
	c.t.Helper()
	got, err := c.call(actor, method, args...)
	if err != nil {
		c.t.Fatalf("%s.%s: %v", actor, method, err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Fatalf("%s.%s: got %v, want %v", actor, method, got, want)
	}
}

// fails is the error of a call that is to have this code.
func (c *client) fails(code rpcerror.Code, actor, method string, args ...any) *rpcerror.Error {
	c.t.Helper()
	return c.failed(code, c.begin(actor, method, args...))
}

func (c *client) failed(code rpcerror.Code, seq uint64) *rpcerror.Error {
	c.t.Helper()
	got, err := c.result(seq)
	if err == nil {
		c.t.Fatalf("got %v, want the error %s", got, code)
	}
	if err.Code != code {
		c.t.Fatalf("got %s (%v), want %s", err.Code, err, code)
	}
	return err
}

// closeError is the error of the last frame, after which the connection ends.
func (c *client) closeError() *rpcerror.Error {
	c.t.Helper()
	for {
		f, _, err := c.conn.Receive()
		if err != nil {
			c.t.Fatalf("the connection ended without a last frame: %v", err)
		}
		if f.GetClose() == nil {
			continue
		}
		if f, _, err := c.conn.Receive(); err == nil {
			c.t.Fatalf("got %v after the last frame", f)
		}
		return rpcerror.FromWire(f.GetClose().GetError())
	}
}

// until polls for a condition.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !is() {
		if time.Now().After(end) {
			t.Fatalf("it never happened: %s", what)
		}
		wait := time.NewTimer(time.Millisecond)
		<-wait.C
	}
}

func next(t testing.TB, from <-chan string) string {
	t.Helper()
	select {
	case s := <-from:
		return s
	case <-time.After(patience):
		t.Fatal("nothing came")
		return ""
	}
}
