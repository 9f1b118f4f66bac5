package actorrpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// anybody is a server of gRPC that is no fray host.
type anybody struct {
	wire.UnimplementedActorsServer
	ran    atomic.Int64
	invoke func(n int64, c *wire.Call) (*wire.Reply, error)
}

func (a *anybody) Invoke(_ context.Context, c *wire.Call) (*wire.Reply, error) {
	n := a.ran.Add(1)
	if r, err := a.invoke(n, c); r != nil || err != nil {
		return r, err
	}
	data, _, err := codec.EncodeResult(codec.Msgpack, n)
	return &wire.Reply{Result: data}, err
}

// Fact 28 by gRPC: what may have run is sent again only with leave.
func TestFact28General(t *testing.T) {
	lost := status.Error(codes.Unavailable, "the connection broke")
	tests := []struct {
		name    string
		options RPCOptions
		fail    error
		reply   *wire.Reply
		code    rpcerror.Code
		ran     int64
	}{
		{"lost", RPCOptions{}, lost, nil, rpcerror.CodeMaybeExecuted, 1},
		{"lost, with retries", RPCOptions{Retries: 1}, lost, nil, "", 2},
		{"lost, idempotent", RPCOptions{Idempotent: true}, lost, nil, "", 2},
		{"refused as stale", RPCOptions{}, nil, &wire.Reply{Error: rejectionOf(rpcerror.CodeStale)}, "", 2},
		{"raised", RPCOptions{Retries: 3}, nil, &wire.Reply{Error: (&rpcerror.Error{Code: rpcerror.CodeApplication, Message: "no", Ran: true}).Wire()}, rpcerror.CodeApplication, 1},
		{"no actors there", RPCOptions{Retries: 3}, status.Error(codes.Unimplemented, "unknown service"), nil, rpcerror.CodeMalformed, 1},
		{"too large", RPCOptions{Retries: 3}, status.Error(codes.ResourceExhausted, "too large"), nil, rpcerror.CodeTooLarge, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := &anybody{invoke: func(n int64, _ *wire.Call) (*wire.Reply, error) {
				if n == 1 {
					return test.reply, test.fail
				}
				return nil, nil
			}}
			client := NewClient(mustFix(t, "grpc://"+a.serve(t)), Config{Options: test.options})
			t.Cleanup(func() { _ = client.Close() })
			_, err := Call[int](t.Context(), mustLookup(t, client, "counter"), "add", 1)
			if rpcerror.CodeOf(err) != test.code {
				t.Errorf("error is %v, want code %q", err, test.code)
			}
			if got := a.ran.Load(); got != test.ran {
				t.Errorf("it ran %d times, want %d", got, test.ran)
			}
		})
	}
}

// A call that never left comes to the server once there is one.
func TestGeneralComesLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	client := NewClient(mustFix(t, "grpc://"+address), Config{})
	t.Cleanup(func() { _ = client.Close() })
	h := mustLookup(t, client, "counter")
	_, err = Call[int](t.Context(), h, "add", 1, RPCOptions{Timeout: 200 * time.Millisecond})
	if rpcerror.CodeOf(err) != rpcerror.CodeDeadline || ran(err) {
		t.Errorf("error is %v, want that the deadline passed and it did not run", err)
	}
	f := Go[int](t.Context(), h, "add", 2)
	a := &anybody{invoke: func(int64, *wire.Call) (*wire.Reply, error) { return nil, nil }}
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skipf("the port was taken: %v", err)
	}
	a.serveAt(t, l)
	if n, err := f.Result(t.Context()); err != nil || n != 1 {
		t.Errorf("got %d, %v; want 1", n, err)
	}
}

func (a *anybody) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.serveAt(t, l)
	return l.Addr().String()
}

func (a *anybody) serveAt(t *testing.T, l net.Listener) {
	t.Helper()
	server := grpc.NewServer()
	wire.RegisterActorsServer(server, a)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		done.Wait()
	})
}

func mustFix(t *testing.T, addresses ...string) *resolver.Fixed {
	t.Helper()
	r, err := resolver.NewFixed(addresses...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
