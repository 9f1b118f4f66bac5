package actorrpc_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// bookcase is an actor with large arguments and results.
type bookcase struct {
	mu   sync.Mutex
	runs []int // the sizes of what was taken
}

func (b *bookcase) Echo(v [][]byte) [][]byte { return v }

func (b *bookcase) Text(s string) string { return s }

func (b *bookcase) Take(book []byte) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs = append(b.runs, len(book))
	return len(book)
}

func (b *bookcase) Give(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs = append(b.runs, n)
	return pattern(n)
}

func (b *bookcase) ran() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.runs)
}

// pattern is bytes that differ by where they are.
func pattern(n int) []byte {
	out := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		out[i], out[i+1], out[i+2] = byte(i>>3), byte(i>>11), byte(i>>19)
	}
	return out
}

// byteBreaker passes connections on to an address. It breaks each, after so many bytes from the client or
// the server, until it has no more breaks.
type byteBreaker struct {
	to string

	mu     sync.Mutex
	breaks []limits
}

type limits struct{ client, server int64 } // 0: without limit

func breakingAfter(t *testing.T, to string, breaks ...limits) (address string, c *byteBreaker) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &byteBreaker{to: to, breaks: breaks}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { c.pass(conn) })
		}
	})
	t.Cleanup(passing.Wait)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), c
}

func (c *byteBreaker) next() limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.breaks) == 0 {
		return limits{}
	}
	first := c.breaks[0]
	c.breaks = c.breaks[1:]
	return first
}

func (c *byteBreaker) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	limit := c.next()
	var both sync.WaitGroup
	copyTo := func(to, from net.Conn, limit int64) {
		var r io.Reader = from
		if limit > 0 {
			r = io.LimitReader(from, limit)
		}
		_, _ = io.Copy(to, r)
		to.Close()
		from.Close()
	}
	both.Go(func() { copyTo(to, from, limit.client) })
	both.Go(func() { copyTo(from, to, limit.server) })
	both.Wait()
}

func TestLargePayloads(t *testing.T) {
	b := &bookcase{}
	server, _ := serve(t, host.Config{}, map[string]any{"bookcase": b})
	h := lookup(t, dialed(t, actorrpc.Config{}, "actor://"+server.Address()), "bookcase")
	books := [][]byte{pattern(9 << 20), pattern(100), {}, pattern(3<<20 + 1)}
	got, err := actorrpc.Call[[][]byte](t.Context(), h, "echo", books)
	if err != nil || !slices.EqualFunc(got, books, bytes.Equal) {
		t.Errorf("got %d books, %v; want what was sent", len(got), err)
	}
	text := strings.Repeat("a page, ", 2<<20)
	if got, err := actorrpc.Call[string](t.Context(), h, "text", text); err != nil || got != text {
		t.Errorf("got a text of %d bytes, %v; want %d", len(got), err, len(text))
	}
	var all []*actorrpc.Future[[]byte]
	for range 4 {
		all = append(all, actorrpc.Go[[]byte](t.Context(), h, "give", 10<<20))
	}
	for _, f := range all {
		if got, err := f.Result(t.Context()); err != nil || !bytes.Equal(got, pattern(10<<20)) {
			t.Errorf("got %d bytes, %v; want what was given", len(got), err)
		}
	}
}

// A connection that breaks within a large call or a large result is opened again: the call runs once.
func TestLargePayloadsAfterBreaks(t *testing.T) {
	b := &bookcase{}
	server, _ := serve(t, host.Config{}, map[string]any{"bookcase": b})
	address, _ := breakingAfter(t, server.Address(), limits{client: 1 << 20}, limits{client: 9 << 20}, limits{server: 100 << 10}, limits{server: 11 << 20})
	h := lookup(t, dialed(t, actorrpc.Config{}, "actor://"+address), "bookcase")
	first := actorrpc.Go[int](t.Context(), h, "take", pattern(10<<20))
	second := actorrpc.Go[[]byte](t.Context(), h, "give", 12<<20)
	third := actorrpc.Go[int](t.Context(), h, "take", pattern(7))
	if got, err := first.Result(t.Context()); err != nil || got != 10<<20 {
		t.Errorf("got %d, %v; want the size of what was taken", got, err)
	}
	if got, err := second.Result(t.Context()); err != nil || !bytes.Equal(got, pattern(12<<20)) {
		t.Errorf("got %d bytes, %v; want what was given", len(got), err)
	}
	if got, err := third.Result(t.Context()); err != nil || got != 7 {
		t.Errorf("got %d, %v; want the size of what was taken", got, err)
	}
	if got := b.ran(); !slices.Equal(got, []int{10 << 20, 12 << 20, 7}) {
		t.Errorf("ran %v, want each once, in order", got)
	}
}

func TestLargePayloadsOverTheLimit(t *testing.T) {
	b := &bookcase{}
	server, _ := serve(t, host.Config{MaxMessageBytes: 20 << 20}, map[string]any{"bookcase": b})
	for protocol, url := range urls(server.Address()) {
		h := lookup(t, dialed(t, actorrpc.Config{}, url), "bookcase")
		_, err := actorrpc.Call[int](t.Context(), h, "take", make([]byte, 20<<20+1))
		if protocol == "frames" && (rpcerror.CodeOf(err) != rpcerror.CodeTooLarge || !strings.Contains(err.Error(), "at most 20 MiB are taken (max_message_bytes)")) {
			t.Errorf("by %s: got %v, want that the arguments are too large", protocol, err)
		}
		_, err = actorrpc.Call[[]byte](t.Context(), h, "give", 20<<20+1)
		if rpcerror.CodeOf(err) != rpcerror.CodeTooLarge || !strings.Contains(err.Error(), "at most 20 MiB are taken (max_message_bytes)") {
			t.Errorf("by %s: got %v, want that the result is too large", protocol, err)
		}
	}
	client := dialed(t, actorrpc.Config{MaxMessageBytes: 10 << 20}, "actor://"+server.Address())
	_, err := actorrpc.Call[[]byte](t.Context(), lookup(t, client, "bookcase"), "give", 11<<20)
	if rpcerror.CodeOf(err) != rpcerror.CodeTooLarge || !strings.Contains(err.Error(), "at most 10 MiB") {
		t.Errorf("got %v, want that the result is more than the client takes", err)
	}
	if slices.Contains(b.ran(), 20<<20+1) && len(b.ran()) != 3 {
		t.Errorf("ran %v", b.ran())
	}
}

// A caller that gives up a large call within it, or its result, ends it. What comes after is served.
func TestLargePayloadsGivenUp(t *testing.T) {
	b := &bookcase{}
	server, _ := serve(t, host.Config{}, map[string]any{"bookcase": b})
	h := lookup(t, dialed(t, actorrpc.Config{}, "actor://"+server.Address()), "bookcase")
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		call := actorrpc.Go[int](ctx, h, "take", pattern(32<<20))
		cancel()
		if _, err := call.Result(t.Context()); err != nil && rpcerror.CodeOf(err) != rpcerror.CodeCancelled {
			t.Errorf("got %v, want that it was cancelled", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		result := actorrpc.Go[[]byte](ctx, h, "give", 32<<20)
		if _, err := actorrpc.Call[int](t.Context(), h, "take", []byte{1}); err != nil {
			t.Error(err)
		}
		cancel()
		if _, err := result.Result(t.Context()); err != nil && rpcerror.CodeOf(err) != rpcerror.CodeCancelled {
			t.Errorf("got %v, want that it was cancelled", err)
		}
	}
	if got, err := actorrpc.Call[[]byte](t.Context(), h, "give", 9<<20); err != nil || len(got) != 9<<20 {
		t.Errorf("got %d bytes, %v; want what was given", len(got), err)
	}
}
