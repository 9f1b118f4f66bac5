package scale

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
)

// within is a connection to what serves hosts in this process.
type within struct {
	to      clusterapi.HostsServer
	streams *atomic.Int64 // there are now; nil: they are not counted
}

var _ dial.Conn = within{}

// Invoke is not served.
func (within) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.Unimplemented, "hosts have streams alone")
}

// Close has nothing to end: a stream ends with its context.
func (within) Close() error { return nil }

// buffered is how many messages of a stream wait in either direction.
const buffered = 4

// NewStream begins a stream.
func (w within) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{
		ctx: ctx, header: make(chan metadata.MD, 1),
		up: make(chan *clusterapi.HostMessages, buffered), down: make(chan *clusterapi.ControllerMessages, buffered),
	}
	go func() {
		if w.streams != nil {
			w.streams.Add(1)
			defer w.streams.Add(-1)
		}
		err := w.to.Connect(&grpc.GenericServerStream[clusterapi.HostMessages, clusterapi.ControllerMessages]{ServerStream: serverEnd{stream: s}})
		if err == nil {
			err = io.EOF
		}
		cancel(err)
	}()
	return clientEnd{stream: s}, nil
}

// stream is a stream between two ends in this process. It hands messages over, uncopied.
type stream struct {
	ctx    context.Context
	header chan metadata.MD
	up     chan *clusterapi.HostMessages
	down   chan *clusterapi.ControllerMessages
}

// ended is how the stream did.
func (s *stream) ended() error {
	err := context.Cause(s.ctx)
	if errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	return err
}

// Context ends with the stream.
func (s *stream) Context() context.Context { return s.ctx }

// clientEnd is the end of a host.
type clientEnd struct {
	*stream
	grpc.ClientStream // what is not called
}

// Context ends with the stream.
func (c clientEnd) Context() context.Context { return c.ctx }

// Header waits for that of what serves.
func (c clientEnd) Header() (metadata.MD, error) {
	select {
	case md := <-c.header:
		return md, nil
	case <-c.ctx.Done():
		return nil, c.ended()
	}
}

// SendMsg sends to what serves.
func (c clientEnd) SendMsg(m any) error {
	select {
	case c.up <- m.(*clusterapi.HostMessages):
		return nil
	case <-c.ctx.Done():
		return io.EOF // RecvMsg returns why
	}
}

// RecvMsg waits for a message to the host.
func (c clientEnd) RecvMsg(m any) error {
	select {
	case got := <-c.down:
		to := m.(*clusterapi.ControllerMessages)
		to.Messages, to.Authorities = got.GetMessages(), got.GetAuthorities()
		return nil
	case <-c.ctx.Done():
		return c.ended()
	}
}

// serverEnd is that of what serves.
type serverEnd struct {
	*stream
	grpc.ServerStream // what is not called
}

// Context ends with the stream.
func (s serverEnd) Context() context.Context { return s.ctx }

// SendHeader is called once.
func (s serverEnd) SendHeader(md metadata.MD) error {
	s.header <- md
	return nil
}

// SendMsg sends to the host.
func (s serverEnd) SendMsg(m any) error {
	select {
	case s.down <- m.(*clusterapi.ControllerMessages):
		return nil
	case <-s.ctx.Done():
		return s.ended()
	}
}

// RecvMsg waits for a message of the host.
func (s serverEnd) RecvMsg(m any) error {
	select {
	case got := <-s.up:
		m.(*clusterapi.HostMessages).Messages = got.GetMessages()
		return nil
	case <-s.ctx.Done():
		return s.ended()
	}
}
