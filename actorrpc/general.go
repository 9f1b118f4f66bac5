package actorrpc

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// general is one address at which gRPC is spoken. Its calls have no numbers: one
// whose connection breaks may have run, and calls on the way at once have no order.
type general struct {
	client  *Client
	address string
	conn    *grpc.ClientConn
	stub    wire.ActorsClient

	self  string
	asked time.Time // when somebody wanted it; under the client's lock

	mu      sync.Mutex
	sent    map[*call]*sending
	retired bool // the client has forgotten it
}

// sending is a call on its way.
type sending struct {
	cancel context.CancelFunc
	handed atomic.Bool // to the connection
}

func newGeneral(client *Client, address string) (*general, error) {
	secured := insecure.NewCredentials()
	if id := client.config.Identity; id != nil {
		secured = credentials.NewTLS(id.clientTLS(protocolGRPC))
	}
	limit := int(client.config.MaxMessageBytes)
	k := client.config.Keepalive
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(secured), grpc.WithNoProxy(), grpc.WithStatsHandler(watcher{}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit), grpc.ForceCodecV2(wire.NewGRPCCodec(uint64(limit))),
		),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: k.Every, Timeout: k.Patience}),
	)
	if err != nil {
		return nil, fmt.Errorf("actor server %s: %w", address, err)
	}
	return &general{client: client, address: address, conn: conn, stub: wire.NewActorsClient(conn), self: rand.Text(), sent: map[*call]*sending{}}, nil
}

// watcher notes which calls were handed to a connection.
type watcher struct{}

type sendingKey struct{}

// TagRPC leaves the context as it is: it has the call's sending.
func (watcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC notes that a message went out.
func (watcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.OutPayload); !ok {
		return
	}
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		s.handed.Store(true)
	}
}

// TagConn and HandleConn are of no use here.
func (watcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (watcher) HandleConn(context.Context, stats.ConnStats) {}

var _ stats.Handler = watcher{}

// ready connects, or says why that failed.
func (g *general) ready(ctx context.Context) error {
	g.conn.ResetConnectBackoff()
	g.conn.Connect()
	for {
		state := g.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure:
			return unavailable(g.address, errNotConnected)
		case connectivity.Shutdown:
			return g.over()
		case connectivity.Idle:
			g.conn.Connect()
		case connectivity.Connecting:
		}
		if !g.conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}

// over says why the connection was closed from here.
func (g *general) over() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired {
		return errRetired
	}
	return errClientClosed()
}

// submit has a goroutine make the call.
func (g *general) submit(c *call) bool {
	if c.behindWaiter(g.peer()) {
		return true
	}
	s := &sending{}
	g.mu.Lock()
	if g.retired {
		g.mu.Unlock()
		return false
	}
	c.sends++
	g.sent[c] = s
	g.mu.Unlock()
	if g.client.run(func(ctx context.Context) { g.invoke(ctx, c, s) }) {
		return true
	}
	g.forget(c, s)
	return false
}

// forget ends a sending, unless the call was sent again.
func (g *general) forget(c *call, s *sending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sent[c] == s {
		delete(g.sent, c)
	}
}

func (g *general) invoke(ctx context.Context, c *call, s *sending) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, sendingKey{}, s))
	defer cancel()
	defer g.forget(c, s) // after its end: who gives it up meanwhile is to know that it was sent
	g.mu.Lock()
	s.cancel = cancel
	g.mu.Unlock()
	if c.finished.Load() {
		return
	}
	request := c.frame()
	request.BufferSizes, request.Buffers, request.Caller = nil, c.buffers, g.self
	reply, err := g.stub.Invoke(ctx, request)
	if err == nil {
		c.actor.answered(c, reply, reply.GetBuffers())
		return
	}
	g.failed(c, s.handed.Load(), err)
}

func (g *general) failed(c *call, handed bool, err error) {
	text := status.Convert(err).Message()
	switch code := status.Code(err); {
	case code == codes.ResourceExhausted:
		c.settled()
		c.fail(&Error{Code: CodeTooLarge, Message: text, Ran: handed})
	case code == codes.Unimplemented:
		c.settled()
		c.fail(&Error{Code: CodeMalformed, Message: "the server at " + g.address + " does not serve actors: " + text})
	case handed:
		c.actor.lost(c, maybeExecuted())
	case c.sends >= maxSends:
		c.settled()
		c.fail(&Error{Code: CodeUnavailable, Message: "nobody answers at " + g.address + ": " + text})
	default:
		c.actor.requeue(c)
	}
}

func (g *general) flush() {}

func (g *general) peer() string { return "" }

func (g *general) throttle(<-chan struct{}) {}

func (g *general) hold(*actor, Endpoint) {}

func (g *general) withdraw(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.sent[c]
	if !ok {
		return false
	}
	if s.cancel != nil {
		s.cancel()
	}
	return s.handed.Load()
}

func (g *general) methods(ctx context.Context, name string) (*wire.ListMethodsResponse, error) {
	listed, err := g.stub.ListMethods(ctx, &wire.ListMethodsRequest{Actor: name})
	if status.Code(err) == codes.NotFound {
		return nil, unknownActor(name, nil)
	}
	return listed, err
}

func (g *general) actors(ctx context.Context, prefix string) ([]*wire.Actor, error) {
	listed, err := g.stub.ListActors(ctx, &wire.ListActorsRequest{Prefix: prefix})
	return listed.GetActors(), err
}

func (g *general) close() { _ = g.conn.Close() }
