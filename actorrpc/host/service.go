package host

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/internal/reclaim"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// service is the server for gRPC.
type service struct {
	wire.UnimplementedActorsServer
	server *Server
}

var _ wire.ActorsServer = (*service)(nil)

// waiter holds the one answer to a call.
type waiter chan answer

var _ answerer = waiter(nil)

func (w waiter) answer(reply *wire.Reply, buffers [][]byte, _ bool) { w <- answer{reply, buffers} }

// Invoke calls a method. If the caller leaves, the call is cancelled.
func (s *service) Invoke(ctx context.Context, in *wire.Call) (*wire.Reply, error) {
	to := make(waiter, 1)
	c := s.call(ctx, in, to)
	c.answer(s.server.submit(c, nil), false)
	select {
	case a := <-to:
		size := uint64(proto.Size(in))
		in.Args, in.Buffers, c.buffers = nil, nil, nil
		reclaim.After(size)
		return withBuffers(a), nil
	case <-ctx.Done():
		c.stop(cancelledByCaller())
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// call is one that came by gRPC.
func (s *service) call(ctx context.Context, in *wire.Call, to answerer) *call {
	now := time.Now()
	c := &call{
		server: s.server, in: in, buffers: in.GetBuffers(), caller: in.GetCaller(), arrived: now, to: to,
		deadline: deadlineOf(now, in.GetTimeoutNs()),
		// The library holds the message in pieces beside the one that is decoded.
		memory:      min(s.server.cfg.MaxMessageBytes, wire.MaxFrame) / 2,
		transferred: transferred{complete: true},
	}
	if p, ok := peer.FromContext(ctx); ok && c.caller == "" {
		c.caller = p.Addr.String()
	}
	if end, ok := ctx.Deadline(); ok && (c.deadline.IsZero() || end.Before(c.deadline)) {
		c.deadline = end
	}
	return c
}

// withBuffers is a reply with what it refers to. What is kept elsewhere is not to be changed: it is a copy.
func withBuffers(a answer) *wire.Reply {
	return &wire.Reply{
		Seq: a.reply.GetSeq(), Codec: a.reply.GetCodec(), Result: a.reply.GetResult(), Buffers: a.buffers,
		Error: a.reply.GetError(), Incarnation: a.reply.GetIncarnation(), Streamed: a.reply.GetStreamed(), Items: a.reply.GetItems(),
	}
}

func cancelledByCaller() *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the caller cancelled the call"}
}

// ListMethods lists the methods of an actor.
func (s *service) ListMethods(_ context.Context, in *wire.ListMethodsRequest) (*wire.ListMethodsResponse, error) {
	out := s.server.listMethods(in.GetActor())
	if e := rpcerror.FromWire(out.GetError()); e != nil {
		return nil, status.Error(codes.NotFound, e.Error())
	}
	return out, nil
}

// ListActors lists the actors of this server.
func (s *service) ListActors(_ context.Context, in *wire.ListActorsRequest) (*wire.ListActorsResponse, error) {
	return &wire.ListActorsResponse{Actors: s.server.listActors(in.GetPrefix())}, nil
}
