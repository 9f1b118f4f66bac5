package actorrpc_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// feed is an actor whose methods stream.
type feed struct {
	made atomic.Int64  // items
	runs atomic.Int64  // methods that began
	left chan struct{} // receives when an iterator was left or has ended

	second      bool          // Late does not wait
	began, gate chan struct{} // Late began, and the one to go on
}

func newFeed() *feed {
	return &feed{left: make(chan struct{}, 10_000), began: make(chan struct{}, 10), gate: make(chan struct{})}
}

// Late yields nothing while the server's first run of it waits for the gate.
func (f *feed) Late(ctx context.Context) iter.Seq[int] {
	f.runs.Add(1)
	return func(yield func(int) bool) {
		if !f.second {
			f.began <- struct{}{}
			<-f.gate
		}
		for i := range 3 {
			if !yield(i) {
				return
			}
		}
	}
}

func (f *feed) Count(n int) iter.Seq[int] {
	f.runs.Add(1)
	return func(yield func(int) bool) {
		defer func() { f.left <- struct{}{} }()
		for i := range n {
			f.made.Add(1)
			if !yield(i) {
				return
			}
		}
	}
}

func (f *feed) Break(n int) (iter.Seq2[int, error], error) {
	if n < 0 {
		return nil, errors.New("below zero")
	}
	f.runs.Add(1)
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
		yield(0, errors.New("the well is dry"))
	}, nil
}

func (f *feed) Panic(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			yield(i)
		}
		panic("enough")
	}
}

func (f *feed) Forever(ctx context.Context) iter.Seq[int] {
	return func(yield func(int) bool) {
		defer func() { f.left <- struct{}{} }()
		for i := 0; yield(i) && ctx.Err() == nil; i++ {
			f.made.Add(1)
		}
	}
}

// Stuck yields one item and waits for the end of its context.
func (f *feed) Stuck(ctx context.Context) iter.Seq[int] {
	return func(yield func(int) bool) {
		defer func() { f.left <- struct{}{} }()
		if yield(0) {
			<-ctx.Done()
		}
	}
}

func (f *feed) Blobs(n, size int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range n {
			f.made.Add(1)
			blob := make([]byte, size)
			blob[0] = byte(i)
			if !yield(blob) {
				return
			}
		}
	}
}

func (f *feed) Empty() iter.Seq[int] { return nil }

func (f *feed) One() int { return 1 }

// collect takes all of a stream.
func collect[T any](items iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range items {
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

// expect checks that a stream had the numbers below n, and then an error of a code; "": none.
func expect(t *testing.T, got []int, err error, n int, code rpcerror.Code) {
	t.Helper()
	for i, v := range got {
		if v != i {
			t.Fatalf("item %d is %d", i, v)
		}
	}
	if len(got) != n || rpcerror.CodeOf(err) != code {
		t.Errorf("got %d items and %v, want %d and code %q", len(got), err, n, code)
	}
}

func fed(t testing.TB, config host.Config, scheme string) (*feed, actorrpc.Handle) {
	f := newFeed()
	server, stop := serve(t, config, map[string]any{"feed": f})
	t.Cleanup(stop)
	client := dialed(t, actorrpc.Config{}, scheme+server.Address())
	return f, lookup(t, client, "feed")
}

func TestStream(t *testing.T) {
	for _, scheme := range []string{"", "grpc://"} {
		t.Run("by "+scheme, func(t *testing.T) {
			f, h := fed(t, host.Config{}, scheme)
			ctx := t.Context()
			got, err := collect(actorrpc.Stream[int](ctx, h, "count", 5000))
			expect(t, got, err, 5000, "")
			got, err = collect(actorrpc.Stream[int](ctx, h, "empty"))
			expect(t, got, err, 0, "")
			got, err = collect(actorrpc.Stream[int](ctx, h, "break", 3))
			expect(t, got, err, 3, rpcerror.CodeApplication)
			got, err = collect(actorrpc.Stream[int](ctx, h, "break", -1))
			expect(t, got, err, 0, rpcerror.CodeApplication)
			got, err = collect(actorrpc.Stream[int](ctx, h, "panic", 3))
			expect(t, got, err, 3, rpcerror.CodeApplication)
			blobs, err := collect(actorrpc.Stream[[]byte](ctx, h, "blobs", 20, 1<<20))
			for i, b := range blobs {
				if len(b) != 1<<20 || b[0] != byte(i) {
					t.Fatalf("blob %d has %d bytes and begins with %d", i, len(b), b[0])
				}
			}
			if len(blobs) != 20 || err != nil {
				t.Errorf("got %d blobs, %v", len(blobs), err)
			}
			<-f.left
			for n, err := range actorrpc.Stream[int](ctx, h, "forever") {
				if n == 10 || err != nil {
					break
				}
			}
			<-f.left // the iterator was left, or nothing else could begin
			if n, err := actorrpc.Call[int](ctx, h, "one"); n != 1 || err != nil {
				t.Errorf("afterwards the actor returned %d, %v", n, err)
			}
		})
	}
}

func TestStreamOfTheWrongKind(t *testing.T) {
	for _, scheme := range []string{"", "grpc://"} {
		f, h := fed(t, host.Config{}, scheme)
		_, err := actorrpc.Call[int](t.Context(), h, "count", 3)
		if rpcerror.CodeOf(err) != rpcerror.CodeBadArguments || f.runs.Load() != 0 {
			t.Errorf("calling a method that streams: got %v after %d runs", err, f.runs.Load())
		}
		_, err = collect(actorrpc.Stream[int](t.Context(), h, "one"))
		if code := rpcerror.CodeOf(err); code != rpcerror.CodeBadArguments && code != rpcerror.CodeEncoding {
			t.Errorf("a loop over a method that does not stream: got %v", err)
		}
	}
}

// The method is a window ahead of the loop at most, in items and in bytes, and other calls go on.
func TestStreamWindow(t *testing.T) {
	f := newFeed()
	server, stop := serve(t, host.Config{}, map[string]any{"feed": f, "other": newFeed()})
	t.Cleanup(stop)
	client := dialed(t, actorrpc.Config{}, server.Address())
	h, other := lookup(t, client, "feed"), lookup(t, client, "other")
	taken := int64(0)
	for _, err := range actorrpc.Stream[int](t.Context(), h, "count", 100, actorrpc.RPCOptions{StreamWindow: 4}) {
		if err != nil {
			t.Fatal(err)
		}
		taken++
		if n, err := actorrpc.Call[int](t.Context(), other, "one"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if made := f.made.Load(); made > taken+4 {
			t.Fatalf("%d items were made when the loop had taken %d", made, taken)
		}
	}
	f.made.Store(0)
	taken = 0
	for _, err := range actorrpc.Stream[[]byte](t.Context(), h, "blobs", 40, 1<<20) {
		if err != nil {
			t.Fatal(err)
		}
		taken++
		if made := f.made.Load(); made > taken+9 { // 8 MiB
			t.Fatalf("%d MiB were made when the loop had taken %d", made, taken)
		}
	}
	if taken != 40 {
		t.Errorf("%d blobs came", taken)
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	for _, scheme := range []string{"", "grpc://"} {
		f, h := fed(t, host.Config{}, scheme)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []int
		var err error
		for n, problem := range actorrpc.Stream[int](ctx, h, "stuck") {
			got, err = append(got, n), problem
			cancel()
		}
		if len(got) != 2 || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v: want an item and then that it was cancelled", got, err)
		}
		<-f.left
		// The deadline is that of the whole stream.
		got, err = collect(actorrpc.Stream[int](t.Context(), h, "stuck", actorrpc.RPCOptions{Timeout: 50e6}))
		if len(got) > 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v: want that the deadline passed", got, err)
		}
	}
}

func TestStreamOfItemsThatGrow(t *testing.T) {
	for _, scheme := range []string{"", "grpc://"} {
		_, h := fed(t, host.Config{MaxMessageBytes: 100_000}, scheme)
		blobs, err := collect(actorrpc.Stream[[]byte](t.Context(), h, "blobs", 3, 200_000))
		if len(blobs) != 0 || rpcerror.CodeOf(err) != rpcerror.CodeTooLarge {
			t.Errorf("got %d items and %v, want none and that it is too large", len(blobs), err)
		}
		if n, err := actorrpc.Call[int](t.Context(), h, "one"); n != 1 || err != nil {
			t.Errorf("afterwards the actor returned %d, %v", n, err)
		}
	}
}

// cutter passes connections on to a server. The first of them ends after so many bytes in one direction.
type cutter struct {
	net.Listener
	target  atomic.Pointer[string]
	toward  int // bytes to the server, from which on the first connection is cut; 0: never
	back    int
	first   sync.Once
	cuts    atomic.Int64
	running sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
}

func (c *cutter) moveTo(target string) { c.target.Store(&target) }

// cutAll ends the connections that there are.
func (c *cutter) cutAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
	}
	c.open = nil
}

func newCutter(t *testing.T, target string, toward, back int) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: listener, toward: toward, back: back}
	c.moveTo(target)
	c.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			toward, back := 0, 0
			c.first.Do(func() { toward, back = c.toward, c.back })
			c.running.Go(func() { c.join(client, toward, back) })
		}
	})
	return c
}

func (c *cutter) join(client net.Conn, toward, back int) {
	defer client.Close()
	server, err := net.Dial("tcp", *c.target.Load())
	if err != nil {
		return
	}
	defer server.Close()
	c.mu.Lock()
	c.open = append(c.open, client, server)
	c.mu.Unlock()
	var both sync.WaitGroup
	pass := func(from, to net.Conn, left int) {
		defer client.Close()
		defer server.Close()
		piece := make([]byte, 4096)
		for endless := left == 0; endless || left > 0; {
			n, err := from.Read(piece)
			if !endless {
				n = min(n, left)
				if left -= n; left == 0 {
					c.cuts.Add(1)
				}
			}
			if _, failed := to.Write(piece[:n]); failed != nil || err != nil {
				return
			}
		}
	}
	both.Go(func() { pass(client, server, toward) })
	both.Go(func() { pass(server, client, back) })
	both.Wait()
}

// A connection that is cut anywhere loses and doubles no item, and the method runs once.
func TestStreamOverConnectionsThatBreak(t *testing.T) {
	f := newFeed()
	server, stop := serve(t, host.Config{}, map[string]any{"feed": f})
	t.Cleanup(stop)
	for _, direction := range []string{"toward", "back"} {
		for n := 1; ; n += 7 {
			toward, back := n, 0
			if direction == "back" {
				toward, back = 0, n
			}
			c := newCutter(t, server.Address(), toward, back)
			client := dialed(t, actorrpc.Config{}, c.Addr().String())
			f.runs.Store(0)
			got, err := collect(actorrpc.Stream[int](t.Context(), lookup(t, client, "feed"), "count", 9, actorrpc.RPCOptions{StreamWindow: 2}))
			expect(t, got, err, 9, "")
			if f.runs.Load() != 1 {
				t.Fatalf("cut after %d bytes %s the server, the method ran %d times", n, direction, f.runs.Load())
			}
			_ = client.Close()
			c.Close()
			c.running.Wait()
			if c.cuts.Load() == 0 {
				if n < 100 {
					t.Errorf("%s the server nothing was cut", direction)
				}
				break
			}
			if t.Failed() {
				t.Fatalf("cut after %d bytes %s the server", n, direction)
			}
		}
	}
}

// When the server is lost the items that have come are delivered, and then the loop is told. Before the first
// item the call is made again where its options allow that.
func TestStreamOfAServerThatIsLost(t *testing.T) {
	for _, begun := range []bool{true, false} {
		former, other := newFeed(), newFeed()
		other.second = true
		server, _ := serve(t, host.Config{Keepalive: 200 * time.Millisecond, Patience: 200 * time.Millisecond}, map[string]any{"feed": former})
		next, _ := serve(t, host.Config{}, map[string]any{"feed": other})
		c := newCutter(t, server.Address(), 0, 0)
		client := dialed(t, actorrpc.Config{}, c.Addr().String())
		h := lookup(t, client, "feed")
		lose := func() {
			c.moveTo(next.Address()) // as if another process had come to the address
			c.cutAll()
		}
		method, want, code := "stuck", 1, rpcerror.CodeMaybeExecuted
		if !begun {
			method, want, code = "late", 3, ""
			go func() {
				<-former.began
				lose()
			}()
		}
		var got []int
		var err error
		for n, problem := range actorrpc.Stream[int](t.Context(), h, method, actorrpc.RPCOptions{Retries: 3}) {
			if err = problem; err != nil {
				break
			}
			got = append(got, n)
			if begun {
				lose()
			}
		}
		expect(t, got, err, want, code)
		if begun && other.runs.Load() != 0 {
			t.Errorf("the other server ran the method %d times", other.runs.Load())
		}
		_ = client.Close()
		c.Close()
		c.running.Wait()
		close(former.gate)
		if begun {
			<-former.left // it was ended, as its caller does not come back
		}
	}
}
