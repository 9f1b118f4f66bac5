package actorrpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// grpcPeer is one address at which gRPC is spoken. Its calls have no numbers: one
// whose connection breaks may have run, and calls on the way at once have no order.
type grpcPeer struct {
	shared
	address string
	conn    *grpc.ClientConn
	stub    wire.ActorsClient
	self    string // wire.Call.caller

	mu      sync.Mutex // guards sent with its sendings' cancel, the deliveries in it, and retired
	sent    map[*delivery]*sending
	retired bool // the client has forgotten it
}

var _ transport = (*grpcPeer)(nil)

// sending is a call on its way.
type sending struct {
	cancel context.CancelFunc
	handed atomic.Bool // to the connection
}

func newGRPCPeer(s shared, address string) (*grpcPeer, error) {
	secured := insecure.NewCredentials()
	if id := s.config.Identity; id != nil {
		secured = credentials.NewTLS(id.clientTLS(protocolGRPC))
	}
	limit := int(min(s.config.MaxMessageBytes, wire.MaxFrame))
	k := s.config.Keepalive
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
	return &grpcPeer{shared: s, address: address, conn: conn, stub: wire.NewActorsClient(conn), self: rand.Text(), sent: map[*delivery]*sending{}}, nil
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

// ready connects, or returns why that failed.
func (g *grpcPeer) ready(ctx context.Context) error {
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

// over is why the connection was closed from here.
func (g *grpcPeer) over() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired {
		return errRetired
	}
	return errClientClosed()
}

// submit has a goroutine make the call.
func (g *grpcPeer) submit(d *delivery) bool {
	if d.behindWaiter(g.process()) {
		return true
	}
	if limit := min(g.config.MaxMessageBytes, wire.MaxFrame); d.bytes+d.overhead() > limit {
		d.owner.fail(tooLarge(d.bytes, limit))
		return true
	}
	s := &sending{}
	g.mu.Lock()
	if g.retired {
		g.mu.Unlock()
		return false
	}
	d.sends++
	g.sent[d] = s
	g.mu.Unlock()
	if g.tasks.Run(func(ctx context.Context) { g.invoke(ctx, d, s) }) {
		return true
	}
	g.forget(d, s)
	return false
}

// forget ends a sending, unless the call was sent again.
func (g *grpcPeer) forget(d *delivery, s *sending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sent[d] == s {
		delete(g.sent, d)
	}
}

func (g *grpcPeer) invoke(ctx context.Context, d *delivery, s *sending) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, sendingKey{}, s))
	defer cancel()
	defer g.forget(d, s) // after its end: a caller that gives it up meanwhile is to know that it was sent
	g.mu.Lock()
	s.cancel = cancel
	g.mu.Unlock()
	if d.owner.ended() {
		return
	}
	request := d.frame()
	request.BufferSizes, request.Buffers, request.Caller = nil, d.buffers, g.self
	invoke := g.one
	if d.inbox != nil {
		invoke = g.stream
	}
	reply, err := invoke(ctx, d, request)
	if err == nil {
		d.owner.answered(reply, reply.GetBuffers())
		return
	}
	g.failed(d, s.handed.Load(), err)
}

func (g *grpcPeer) one(ctx context.Context, _ *delivery, request *wire.Call) (*wire.Reply, error) {
	return g.stub.Invoke(ctx, request)
}

// stream takes the items of a stream as fast as its loop does, and returns the reply after them.
func (g *grpcPeer) stream(ctx context.Context, d *delivery, request *wire.Call) (*wire.Reply, error) {
	items, err := g.stub.InvokeStream(ctx, request)
	if err != nil {
		return nil, err
	}
	for received := uint64(0); ; received++ {
		one, err := items.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return &wire.Reply{Streamed: true, Items: received}, nil
		case err != nil:
			return nil, err
		case one.GetError() != nil || !one.GetStreamed():
			return one, nil
		}
		f := &wire.Items{First: received + 1, Codec: one.GetCodec(), Results: [][]byte{one.GetResult()}}
		for _, b := range one.GetBuffers() {
			f.BufferSizes = append(f.BufferSizes, uint64(len(b)))
		}
		f.Buffers = []uint32{uint32(len(one.GetBuffers()))}
		if err := d.inbox.addWaiting(ctx, f, one.GetBuffers()); err != nil {
			return nil, err
		}
	}
}

func (g *grpcPeer) taken(*delivery, uint64) {}

func (g *grpcPeer) failed(d *delivery, handed bool, err error) {
	text := status.Convert(err).Message()
	switch code := status.Code(err); {
	case code == codes.ResourceExhausted:
		d.owner.settled()
		d.owner.fail(&rpcerror.Error{Code: rpcerror.CodeTooLarge, Message: text, Ran: handed})
	case code == codes.Unimplemented:
		d.owner.settled()
		d.owner.fail(&rpcerror.Error{Code: rpcerror.CodeMalformed, Message: "the server at " + g.address + " does not serve actors: " + text})
	case handed:
		d.owner.lost(maybeExecuted())
	case d.sends >= maxSends:
		d.owner.settled()
		d.owner.fail(&rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: "no server answers at " + g.address + ": " + text})
	default:
		d.owner.requeue()
	}
}

func (g *grpcPeer) flush() {}

func (g *grpcPeer) process() string { return "" }

func (g *grpcPeer) throttle(<-chan struct{}) {}

func (g *grpcPeer) hold(locator, resolver.Endpoint) {}

func (g *grpcPeer) withdraw(d *delivery) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.sent[d]
	if !ok {
		return false
	}
	if s.cancel != nil {
		s.cancel()
	}
	return s.handed.Load()
}

func (g *grpcPeer) methods(ctx context.Context, name string) (*wire.ListMethodsResponse, error) {
	listed, err := g.stub.ListMethods(ctx, &wire.ListMethodsRequest{Actor: name})
	if status.Code(err) == codes.NotFound {
		return nil, rpcerror.UnknownActorOf(name, nil)
	}
	return listed, err
}

func (g *grpcPeer) actors(ctx context.Context, prefix string) ([]*wire.Actor, error) {
	listed, err := g.stub.ListActors(ctx, &wire.ListActorsRequest{Prefix: prefix})
	return listed.GetActors(), err
}

func (g *grpcPeer) close() { _ = g.conn.Close() }

// retire closes the connection and has the peer forgotten, unless it has calls. forget is
// called under the lock: nothing finds a peer that is retired.
func (g *grpcPeer) retire(forget func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sent) > 0 {
		return
	}
	g.retired = true
	g.close()
	forget()
}
