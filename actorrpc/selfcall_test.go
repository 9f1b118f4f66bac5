package actorrpc_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/registrytest"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// node is an actor that calls another, which may be itself.
type node struct {
	next actorrpc.Handle
	ran  atomic.Int32 // Value
	left chan error   // what became of the calls that outlast their methods
}

func newNode() *node { return &node{left: make(chan error, 1)} }

func (n *node) Value() int { return int(n.ran.Add(1)) }

func (n *node) Beside() int { return 8 }

// Call waits for a method of the next one.
func (n *node) Call(ctx context.Context, method string) (int, error) {
	return actorrpc.Call[int](ctx, n.next, method)
}

// Relay has the next one call a method of the one after it.
func (n *node) Relay(ctx context.Context, method string) (int, error) {
	return actorrpc.Call[int](ctx, n.next, "call", method)
}

func (n *node) Raw(ctx context.Context, method string) (int, error) {
	_, err := actorrpc.CallRaw(ctx, n.next, method, actorrpc.Raw{Codec: codec.JSON, Data: []byte("[[],{}]")})
	return 0, err
}

func (n *node) Result(ctx context.Context, method string) (int, error) {
	return actorrpc.Go[int](ctx, n.next, method).Result(ctx)
}

func (n *node) Wait(ctx context.Context, method string) (int, error) {
	_, _, err := actorrpc.Wait(ctx, 1, actorrpc.Go[int](ctx, n.next, method))
	return 0, err
}

func (n *node) Broadcast(ctx context.Context, method string) (int, error) {
	a := actorrpc.Broadcast[int](ctx, []actorrpc.Handle{n.next}, method)[0]
	return a.Result, a.Err
}

func (n *node) Valued(ctx context.Context, method string) (int, error) {
	type key struct{}
	return actorrpc.Call[int](context.WithValue(ctx, key{}, 1), n.next, method)
}

// Leave does not wait.
func (n *node) Leave(ctx context.Context, method string) (int, error) {
	f := actorrpc.Go[int](context.WithoutCancel(ctx), n.next, method)
	go func() {
		_, err := f.Result(context.WithoutCancel(ctx))
		n.left <- err
	}()
	return 9, nil
}

// Outlive waits elsewhere.
func (n *node) Outlive(ctx context.Context, method string) (int, error) {
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_, err := actorrpc.Call[int](ctx, n.next, method)
		n.left <- err
	}()
	return 9, nil
}

// Timed gives up by itself.
func (n *node) Timed(ctx context.Context, method string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	return actorrpc.Call[int](ctx, n.next, method)
}

// options of nodes, with so many methods at once.
func nodeOptions(room int) host.Options {
	return host.Options{
		MaxConcurrency: room, Groups: map[string]int{"beside": 1},
		Methods: map[string]host.MethodOptions{"Beside": {Group: "beside"}},
	}
}

// nodes hosts actors in one process and in a cluster, by their names, with so many methods at a time each.
// It returns the ways to them.
func nodes(t *testing.T, actors map[string]*node, rooms map[string]int) map[string]*actorrpc.Client {
	t.Helper()
	registry, err := registrytest.Start("self")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Stop)
	environment := map[string]string{}
	for _, pair := range registry.Environment("job/1", 0) {
		name, value, _ := strings.Cut(pair, "=")
		environment[name] = value
	}
	config, release, err := host.FromEnvironment(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	names := resolver.NewCluster(config.Metadata, "self")
	client := actorrpc.NewClient(names, actorrpc.Config{Namespace: "self"})
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), names.Close()); err != nil {
			t.Error(err)
		}
	})
	server, _ := serve(t, config, nil)
	for name, n := range actors {
		if _, err := server.Register(name, n, nodeOptions(rooms[name])); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]*actorrpc.Client{
		"cluster": client, "address": dialed(t, actorrpc.Config{}, server.Address()), "grpc": dialed(t, actorrpc.Config{}, "grpc://"+server.Address()),
	}
}

// refused fails unless an error is what a method returned who waited for itself.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*rpcerror.Error](err)
	if !ok || e.Code != rpcerror.CodeApplication || e.Type != "*rpcerror.SelfCallError" {
		t.Fatalf("error is %v, want one that a SelfCallError is the type of", err)
	}
	if e.Cause == nil || e.Cause.Code != rpcerror.CodeBusy || e.Message != e.Cause.Error() {
		t.Errorf("its cause is %v, want the same of code busy", e.Cause)
	}
	for _, part := range []string{want, "and one of the two runs at a time", "with a MaxConcurrency of 2 or more"} {
		if !strings.Contains(e.Message, part) {
			t.Errorf("it says %q, want %q in it", e.Message, part)
		}
	}
}

func TestAMethodThatWaitsForItsOwnActor(t *testing.T) {
	self := newNode()
	clients := nodes(t, map[string]*node{"self": self, "alias": self}, nil)
	ways := map[string]actorrpc.Handle{
		"by the cluster": lookup(t, clients["cluster"], "self"), "by its address": lookup(t, clients["address"], "self"),
		"by another name": lookup(t, clients["cluster"], "alias"), "by gRPC": lookup(t, clients["grpc"], "self"),
	}
	caller := lookup(t, clients["cluster"], "self")
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		self.next = ways[way]
		if way == "by gRPC" { // which does not say who answers before there is an answer
			if _, err := actorrpc.Call[int](t.Context(), self.next, "beside"); err != nil {
				t.Fatal(err)
			}
		}
		for _, method := range []string{"call", "raw", "broadcast", "valued", "result", "wait"} {
			t.Run(way+", "+method, func(t *testing.T) {
				before := self.ran.Load()
				_, err := actorrpc.Call[int](t.Context(), caller, method, "value")
				name := self.next.Name()
				refused(t, err, name+".value: the actor's own "+method+" waits for it")
				if e, _ := errors.AsType[*rpcerror.Error](err); method == "result" || method == "wait" {
					if !e.Cause.Ran || !strings.Contains(e.Message, "it begins when "+method+" has returned") {
						t.Errorf("error is %+v, want that it may run", e.Cause)
					}
					return
				} else if e.Cause.Ran {
					t.Errorf("error is %+v, want that it did not run", e.Cause)
				}
				if n, err := actorrpc.Call[int](t.Context(), caller, "value"); err != nil || n != int(before)+1 {
					t.Errorf("it ran %d times, %v; want once, for this call", n-int(before), err)
				}
			})
		}
	}
}

func TestWhatDoesNotWaitForItself(t *testing.T) {
	tests := []struct {
		name   string
		room   int
		method string
		calls  string
		want   int
		left   bool
	}{
		{"beside another", 2, "call", "value", 1, false},
		{"its result beside another", 2, "result", "value", 1, false},
		{"another group", 1, "call", "beside", 8, false},
		{"another group's result", 1, "result", "beside", 8, false},
		{"what is not waited for", 1, "leave", "value", 9, true},
		{"what outlasts the method", 1, "outlive", "value", 9, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			self := newNode()
			clients := nodes(t, map[string]*node{"self": self}, map[string]int{"self": test.room})
			self.next = lookup(t, clients["address"], "self")
			if got, err := actorrpc.Call[int](t.Context(), self.next, test.method, test.calls); err != nil || got != test.want {
				t.Fatalf("got %d, %v; want %d", got, err, test.want)
			}
			if !test.left {
				return
			}
			if err := <-self.left; err != nil || self.ran.Load() != 1 {
				t.Errorf("the call that went on: %v, it ran %d times; want once", err, self.ran.Load())
			}
		})
	}
	t.Run("one that gives up by itself", func(t *testing.T) {
		self := newNode()
		clients := nodes(t, map[string]*node{"self": self}, nil)
		self.next = lookup(t, clients["address"], "self")
		_, err := actorrpc.Call[int](t.Context(), self.next, "timed", "value")
		if e, ok := errors.AsType[*rpcerror.Error](err); !ok || e.Cause == nil || e.Cause.Code != rpcerror.CodeDeadline {
			t.Errorf("error is %v, want the deadline's", err)
		}
	})
	t.Run("an actor like it", func(t *testing.T) {
		first, second := newNode(), newNode()
		clients := nodes(t, map[string]*node{"first": first, "second": second}, nil)
		first.next = lookup(t, clients["cluster"], "second")
		if got, err := actorrpc.Call[int](t.Context(), lookup(t, clients["cluster"], "first"), "call", "value"); err != nil || got != 1 || first.ran.Load() != 0 {
			t.Errorf("got %d, %v; want the other's 1", got, err)
		}
	})
}

func TestActorsThatWaitForEachOther(t *testing.T) {
	tests := []struct {
		name   string
		rooms  map[string]int
		method string // of first, which calls second's, which calls first.value
		stuck  bool
	}{
		{"a circle", nil, "relay", true},
		{"the first has room", map[string]int{"first": 2}, "relay", false},
		{"the second has room", map[string]int{"second": 2}, "relay", true},
	}
	for _, test := range tests {
		for _, way := range []string{"cluster", "address"} {
			t.Run(test.name+", by "+way, func(t *testing.T) {
				first, second := newNode(), newNode()
				clients := nodes(t, map[string]*node{"first": first, "second": second}, test.rooms)
				first.next, second.next = lookup(t, clients[way], "second"), lookup(t, clients[way], "first")
				// The test's own calls are of another client: they are not part of the circle.
				got, err := actorrpc.Call[int](t.Context(), lookup(t, clients["grpc"], "first"), test.method, "value")
				if !test.stuck {
					if err != nil || got != 1 {
						t.Errorf("got %d, %v; want 1", got, err)
					}
					return
				}
				e, _ := errors.AsType[*rpcerror.Error](err)
				for e != nil && e.Type != "*rpcerror.SelfCallError" {
					e = e.Cause
				}
				if e == nil {
					t.Fatalf("error is %v, want one that comes of a SelfCallError", err)
				}
				refused(t, e, "first.value: the actor's own "+test.method+" waits for it, through second.call")
				if first.ran.Load() != 0 {
					t.Error("what was refused ran")
				}
			})
		}
	}
}

func TestSelfCallErrors(t *testing.T) {
	err := error(&rpcerror.SelfCallError{Busy: &rpcerror.Error{Code: rpcerror.CodeBusy, Message: "x"}})
	if rpcerror.CodeOf(err) != rpcerror.CodeBusy || !errors.Is(err, &rpcerror.Error{Code: rpcerror.CodeBusy}) || err.Error() != "x" {
		t.Errorf("%v is of code %q, want busy", err, rpcerror.CodeOf(err))
	}
}
