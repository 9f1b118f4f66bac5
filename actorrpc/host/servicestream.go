package host

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// grpcSink holds what a stream has for a caller by gRPC until it is sent.
type grpcSink struct {
	ctx   context.Context // of the caller
	ready chan struct{}   // receives when there may be something

	mu     sync.Mutex // guards the rest
	queued []answer   // an item each
	reply  *answer
}

var _ sink = (*grpcSink)(nil)

func (g *grpcSink) items(f *wire.Items, buffers [][]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, result := range f.GetResults() {
		n := 0
		if i < len(f.GetBuffers()) {
			n = int(f.GetBuffers()[i])
		}
		item := &wire.Reply{Seq: f.GetSeq(), Codec: f.GetCodec(), Result: result, Streamed: true, Items: f.GetFirst() + uint64(i)}
		g.queued = append(g.queued, answer{item, buffers[:n:n]})
		buffers = buffers[n:]
	}
}

func (g *grpcSink) answer(reply *wire.Reply, buffers [][]byte, _ bool) {
	g.mu.Lock()
	g.reply = &answer{reply, buffers}
	g.mu.Unlock()
	g.flush()
}

func (g *grpcSink) flush() {
	select {
	case g.ready <- struct{}{}:
	default:
	}
}

func (g *grpcSink) left() bool { return g.ctx.Err() != nil }

// take is what there is to be sent: items, and the last reply.
func (g *grpcSink) take() (items []answer, reply *answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	items, g.queued = g.queued, nil
	return items, g.reply
}

// InvokeStream calls a method that streams, or any other. If the caller leaves, the call is cancelled.
func (s *service) InvokeStream(in *wire.Call, out grpc.ServerStreamingServer[wire.Reply]) error {
	ctx := out.Context()
	to := &grpcSink{ctx: ctx, ready: make(chan struct{}, 1)}
	c := s.call(ctx, in, to)
	c.takes = takesEither
	c.answer(s.server.submit(c, nil), false)
	for {
		select {
		case <-to.ready:
		case <-ctx.Done():
			c.stop(cancelledByCaller())
			return status.FromContextError(ctx.Err()).Err()
		}
		items, reply := to.take()
		for _, one := range items {
			if err := out.Send(withBuffers(one)); err != nil {
				c.stop(cancelledByCaller())
				return err
			}
			c.streaming().ack(one.reply.GetItems())
		}
		if reply == nil {
			continue
		}
		if last := withBuffers(*reply); !last.GetStreamed() || last.GetError() != nil {
			return out.Send(last)
		}
		return nil
	}
}
