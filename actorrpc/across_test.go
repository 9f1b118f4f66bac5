package actorrpc_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// patience is how long tests wait for what is to happen: the machines are slow.
const patience = 5 * time.Minute

// counter is an actor.
type counter struct {
	mu   sync.Mutex
	n    int
	seen []int
}

func (c *counter) Increment(by int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += by
	return c.n
}

func (c *counter) Note(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, n)
}

func (c *counter) Seen() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

func (c *counter) Fail(text string) error { return errors.New(text) }

func (c *counter) Echo(v any) any { return v }

func (c *counter) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (c *counter) Left(ctx context.Context) bool {
	_, ok := ctx.Deadline()
	return ok
}

// serve hosts actors until the test ends, or stop is called.
func serve(t testing.TB, config host.Config, actors map[string]any) (server *host.Server, stop func()) {
	t.Helper()
	server, err := host.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range actors {
		if _, err := server.Register(name, value, host.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := server.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return server, stop
}

// dialed is a client of fixed addresses.
func dialed(t testing.TB, config actorrpc.Config, addresses ...string) *actorrpc.Client {
	t.Helper()
	r, err := resolver.NewFixed(addresses...)
	if err != nil {
		t.Fatal(err)
	}
	client := actorrpc.NewClient(r, config)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func lookup(t testing.TB, client *actorrpc.Client, name string) actorrpc.Handle {
	t.Helper()
	h, err := client.Lookup(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// urls are the ways to one server.
func urls(address string) map[string]string {
	return map[string]string{"frames": "actor://" + address, "grpc": "grpc://" + address}
}

func TestAcross(t *testing.T) {
	server, _ := serve(t, host.Config{}, map[string]any{"counter": &counter{}})
	for way, url := range urls(server.Address()) {
		t.Run(way, func(t *testing.T) {
			h := lookup(t, dialed(t, actorrpc.Config{}, url), "counter")
			t.Run("typed", func(t *testing.T) {
				before, err := actorrpc.Call[int](t.Context(), h, "increment", 0)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := actorrpc.Call[int](t.Context(), h, "increment", 2); err != nil || n != before+2 {
					t.Errorf("got %d, %v; want %d", n, err, before+2)
				}
			})
			t.Run("large", func(t *testing.T) {
				data := make([]byte, 1<<20)
				data[1<<19] = 7
				if got, err := actorrpc.Call[[]byte](t.Context(), h, "echo", data); err != nil || !slices.Equal(got, data) {
					t.Errorf("%d bytes came back, %v; want those sent", len(got), err)
				}
			})
			t.Run("a handle as argument and result", func(t *testing.T) {
				got, err := actorrpc.Call[actorrpc.Handle](t.Context(), h, "echo", h)
				if err != nil || got.Name() != "counter" {
					t.Fatalf("got %v, %v; want a handle of counter", got, err)
				}
				if _, err := actorrpc.Call[int](t.Context(), got, "increment", 0); err != nil {
					t.Error(err)
				}
			})
			t.Run("nothing", func(t *testing.T) {
				if _, err := actorrpc.Call[struct{}](t.Context(), h, "note", 1); err != nil {
					t.Error(err)
				}
			})
			t.Run("a deadline travels", func(t *testing.T) {
				if has, err := actorrpc.Call[bool](t.Context(), h, "left", actorrpc.RPCOptions{Timeout: patience}); err != nil || !has {
					t.Errorf("the method has a deadline: %t, %v", has, err)
				}
			})
			t.Run("cancelled", func(t *testing.T) {
				f := actorrpc.Go[struct{}](t.Context(), h, "wait")
				f.Cancel()
				_, err := f.Result(t.Context())
				if rpcerror.CodeOf(err) != rpcerror.CodeCancelled || !errors.Is(err, context.Canceled) {
					t.Errorf("error is %v, want that it was cancelled", err)
				}
				// The method ends: it is the only one that runs at a time.
				if _, err := actorrpc.Call[int](t.Context(), h, "increment", 0); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Fact 25: calls of one caller run in order at concurrency 1, also through handles created again.
func TestFact25OrderAcrossHandles(t *testing.T) {
	server, _ := serve(t, host.Config{}, map[string]any{"counter": &counter{}})
	client := dialed(t, actorrpc.Config{}, server.Address())
	const calls = 500
	futures := make([]*actorrpc.Future[struct{}], calls)
	for i := range futures {
		futures[i] = actorrpc.Go[struct{}](t.Context(), lookup(t, client, "counter"), "note", i)
	}
	for _, f := range futures {
		if _, err := f.Result(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := actorrpc.Call[[]int](t.Context(), lookup(t, client, "counter"), "seen")
	if err != nil || len(seen) != calls || !slices.IsSorted(seen) {
		t.Errorf("%d calls ran, sorted: %t, %v; want %d in order", len(seen), slices.IsSorted(seen), err, calls)
	}
}

// Fact 26: wrong arity or unknown method: an error, and nothing runs, whatever the retries.
// Fact 27: a method's error reaches the caller, and is not retried; the actor lives on.
func TestFact26And27ErrorsAcross(t *testing.T) {
	server, _ := serve(t, host.Config{}, map[string]any{"counter": &counter{}})
	tests := []struct {
		name, method string
		args         []any
		code         rpcerror.Code
		ran          bool
		want         string
	}{
		{"unknown method", "incremnt", []any{1}, rpcerror.CodeUnknownMethod, false, "increment"},
		{"underscore", "_increment", []any{1}, rpcerror.CodeUnknownMethod, false, "underscore names are not callable"},
		{"arity", "increment", []any{1, 2, 3}, rpcerror.CodeBadArguments, false, "takes 1 argument, got 3"},
		{"type", "increment", []any{"two"}, rpcerror.CodeBadArguments, false, "args[0]: want int, got string"},
		{"raised", "fail", []any{"no such lesson"}, rpcerror.CodeApplication, true, "no such lesson"},
		{"not carried", "echo", []any{map[string]any{"lr": make(chan int)}}, rpcerror.CodeEncoding, false, "args[0].lr"},
	}
	for way, url := range urls(server.Address()) {
		client := dialed(t, actorrpc.Config{Options: actorrpc.RPCOptions{Retries: 3, Idempotent: true}}, url)
		h := lookup(t, client, "counter")
		for _, test := range tests {
			t.Run(way+", "+test.name, func(t *testing.T) {
				_, err := actorrpc.Call[any](t.Context(), h, test.method, test.args...)
				e, ok := errors.AsType[*rpcerror.Error](err)
				if !ok || e.Code != test.code || e.Ran != test.ran || !strings.Contains(e.Error(), test.want) {
					t.Fatalf("error is %v, want one of %s that has %q", err, test.code, test.want)
				}
				if e.Actor != "counter" || e.Method != test.method {
					t.Errorf("it names %q and %q, want counter and %q", e.Actor, e.Method, test.method)
				}
				if test.ran && e.Type == "" {
					t.Errorf("its type is %q, want the Go error's", e.Type)
				}
				if _, err := actorrpc.Call[int](t.Context(), h, "increment", 0); err != nil {
					t.Errorf("the actor lives on: %v", err)
				}
			})
		}
		t.Run(way+", unknown actor", func(t *testing.T) {
			_, err := actorrpc.Call[any](t.Context(), lookup(t, client, "conter"), "increment", 1)
			e, ok := errors.AsType[*rpcerror.Error](err)
			if !ok || e.Code != rpcerror.CodeUnknownActor || !slices.Equal(e.Suggestions, []string{"counter"}) {
				t.Errorf("error is %v, want an unknown actor near counter", err)
			}
		})
	}
}

// Fact 24: a restart resets the state, and handles find the actor again.
func TestFact24RestartedAcross(t *testing.T) {
	r, err := resolver.NewLocal(nil)
	if err != nil {
		t.Fatal(err)
	}
	first, stop := serve(t, host.Config{}, map[string]any{"counter": &counter{}})
	r.Set("counter", resolver.Endpoint{Address: first.Address()})
	client := actorrpc.NewClient(r, actorrpc.Config{})
	t.Cleanup(func() { _ = client.Close() })
	h := lookup(t, client, "counter")
	for want := 1; want <= 2; want++ {
		if n, err := actorrpc.Call[int](t.Context(), h, "increment", 1); err != nil || n != want {
			t.Fatalf("got %d, %v; want %d", n, err, want)
		}
	}
	stop()
	second, _ := serve(t, host.Config{}, map[string]any{"counter": &counter{}})
	r.Set("counter", resolver.Endpoint{Address: second.Address()})
	if n, err := actorrpc.Call[int](t.Context(), h, "increment", 1); err != nil || n != 1 {
		t.Errorf("after the restart: got %d, %v; want 1", n, err)
	}
}

const envRef = "ACTORRPC_TEST_REF"

// Fact 32: handles serialize to a name and work in another process.
func TestFact32HandleInAnotherProcess(t *testing.T) {
	if text := os.Getenv(envRef); text != "" {
		name, url, _ := strings.Cut(text, " ")
		h, err := dialed(t, actorrpc.Config{}, "127.0.0.1:1").Handle(codec.ActorRef{Name: name, URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := actorrpc.Call[int](t.Context(), h, "increment", 40); err != nil || n != 42 {
			t.Errorf("got %d, %v; want 42", n, err)
		}
		return
	}
	server, _ := serve(t, host.Config{}, map[string]any{"counter": &counter{}})
	h := lookup(t, dialed(t, actorrpc.Config{}, server.Address()), "counter")
	if n, err := actorrpc.Call[int](t.Context(), h, "increment", 2); err != nil || n != 2 {
		t.Fatalf("got %d, %v; want 2", n, err)
	}
	ref := h.ActorRef()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFact32HandleInAnotherProcess$", "-test.v")
	child.Env = append(os.Environ(), envRef+"="+ref.Name+" "+ref.URL)
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("in the other process: %v\n%s", err, out)
	}
	if n, err := actorrpc.Call[int](t.Context(), h, "increment", 0); err != nil || n != 42 {
		t.Errorf("afterwards: got %d, %v; want 42", n, err)
	}
}

// Clients that come and go leave no goroutine and no descriptor.
func TestLeaks(t *testing.T) {
	server, _ := serve(t, host.Config{}, map[string]any{"counter": &counter{}})
	round := func() {
		for _, url := range urls(server.Address()) {
			r, err := resolver.NewFixed(url)
			if err != nil {
				t.Fatal(err)
			}
			client := actorrpc.NewClient(r, actorrpc.Config{})
			if _, err := actorrpc.Call[int](t.Context(), lookup(t, client, "counter"), "increment", 1); err != nil {
				t.Error(err)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list descriptors")
		}
		return len(entries)
	}
	round()
	goroutines, open := runtime.NumGoroutine(), descriptors()
	for range 20 {
		round()
	}
	end := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		g, d := runtime.NumGoroutine(), descriptors()
		if g <= goroutines+2 && d <= open+2 {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%d goroutines and %d descriptors, %d and %d before", g, d, goroutines, open)
		}
	}
}

// BenchmarkCall is one call after the other, and 64 at once.
func BenchmarkCall(b *testing.B) {
	server, _ := serve(b, host.Config{}, map[string]any{"counter": &counter{}})
	h := lookup(b, dialed(b, actorrpc.Config{}, server.Address()), "counter")
	call := func(b *testing.B) {
		if _, err := actorrpc.Call[int](b.Context(), h, "increment", 1); err != nil {
			b.Error(err)
		}
	}
	b.Run("1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call(b)
		}
	})
	b.Run("64", func(b *testing.B) {
		b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call(b)
			}
		})
	})
}
