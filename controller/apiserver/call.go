package apiserver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/caller"
)

// term is one time of leading.
type term struct {
	lease    access.Lease
	attempts *attempts
}

var errJobEnded = errors.New("the job has ended")

// open reports whether a method is anybody's, also of a controller that does
// not lead: who asks for it learns nothing of the stack.
func open(method string) bool { return strings.HasPrefix(method, "/grpc.health.") }

// about reports whether a method tells of the server rather than of the stack.
func about(method string) bool { return open(method) || strings.HasPrefix(method, "/grpc.reflection.") }

// unary takes every call but streams from the token to the service.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	if about(info.FullMethod) {
		return handler(ctx, req)
	}
	c, err := s.begin(ctx, s.calls)
	if err != nil {
		return nil, s.answer(ctx, info.FullMethod, err)
	}
	defer c.end()
	defer func() {
		if r := recover(); r != nil {
			resp, err = nil, s.panicked(info.FullMethod, r)
		}
		err = s.answer(ctx, info.FullMethod, c.judge(err))
	}()
	if err := allowed(caller.Of(ctx), info.FullMethod, req); err != nil {
		return nil, err
	}
	return handler(c.ctx, req)
}

// stream does the same for streams, each of whose messages is checked.
func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	if about(info.FullMethod) {
		return handler(srv, ss)
	}
	ctx := ss.Context()
	c, err := s.begin(ctx, s.streams)
	if err != nil {
		return s.answer(ctx, info.FullMethod, err)
	}
	defer c.end()
	defer func() {
		if r := recover(); r != nil {
			err = s.panicked(info.FullMethod, r)
		}
		err = s.answer(ctx, info.FullMethod, c.judge(err))
	}()
	return handler(srv, &checkedStream{ServerStream: ss, ctx: c.ctx, method: info.FullMethod})
}

// call is one that was let in: its context ends with the lease, with the
// attempt that the caller speaks for, and with the server.
type call struct {
	ctx  context.Context
	ends []func()
	stop context.CancelCauseFunc
}

// begin lets a call in if this controller leads and its caller still may call.
func (s *Server) begin(ctx, until context.Context) (*call, error) {
	t := s.term.Load()
	if t == nil || t.lease.Context().Err() != nil || t.lease.Valid() != nil {
		return nil, s.notLeading()
	}
	c := &call{}
	who := caller.Of(ctx)
	var attempt *liveAttempt
	if who.Kind == caller.Job {
		var err error
		if attempt, err = t.attempts.hold(ctx, who); err != nil {
			return nil, err
		}
		who.User = t.attempts.user(who) // whose share it uses is not the host's to claim
		c.ends = append(c.ends, func() { t.attempts.release(attempt) })
	}
	c.ctx, c.stop = context.WithCancelCause(caller.With(ctx, who))
	c.endWith(until)
	c.endWith(t.lease.Context())
	if attempt != nil {
		c.endWith(attempt.ctx)
	}
	return c, nil
}

// endWith ends the call when another context does.
func (c *call) endWith(other context.Context) {
	cause := func() error {
		switch err := context.Cause(other); {
		case errors.Is(err, errStopping), errors.Is(err, errJobEnded):
			return err
		default: // the lease's
			return access.ErrNotLeading
		}
	}
	stop := context.AfterFunc(other, func() { c.stop(cause()) })
	c.ends = append(c.ends, func() { stop() })
}

func (c *call) end() {
	for _, end := range c.ends {
		end()
	}
	c.stop(nil)
}

// judge says why a call broke off that did not end by itself.
func (c *call) judge(err error) error {
	if err == nil {
		return nil
	}
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errJobEnded):
		return status.Error(codes.Unauthenticated, cause.Error())
	case errors.Is(cause, errStopping):
		return status.Error(codes.Unavailable, cause.Error()+"; another one will lead")
	case errors.Is(cause, access.ErrNotLeading):
		return status.Error(codes.Unavailable, cause.Error()+" any more; another one will")
	}
	return err
}

func (s *Server) notLeading() error {
	if leader := s.cfg.Leader(); leader != "" {
		return status.Errorf(codes.Unavailable, "%v; %s does", access.ErrNotLeading, leader)
	}
	return status.Errorf(codes.Unavailable, "%v, and it is not known yet who does", access.ErrNotLeading)
}

// answer logs what was refused.
func (s *Server) answer(ctx context.Context, method string, err error) error {
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		s.logRejection(ctx, method, err)
	}
	return err
}

func (s *Server) logRejection(ctx context.Context, method string, err error) {
	from := "unknown"
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		from = p.Addr.String()
	}
	st := status.Convert(err)
	s.cfg.Log.Warn("refused a call", "peer", from, "method", method, "code", st.Code().String(), "reason", st.Message(),
		"caller", caller.Of(ctx).String())
}

func (s *Server) panicked(method string, r any) error {
	s.cfg.Log.Error("a call failed by a mistake in fray", "method", method, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	return status.Error(codes.Internal, "the controller failed at this call by a mistake of its own; its log says where")
}

// checkedStream is a stream whose messages are checked as they come.
type checkedStream struct {
	grpc.ServerStream
	ctx    context.Context
	method string
}

func (c *checkedStream) Context() context.Context { return c.ctx }

func (c *checkedStream) RecvMsg(m any) error {
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return allowed(caller.Of(c.ctx), c.method, m)
}

// sizes logs the messages that gRPC refuses for their size, before any
// interceptor sees them.
type sizes struct{ server *Server }

var _ stats.Handler = sizes{}

// TagRPC does nothing.
func (sizes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC looks how a call ended.
func (z sizes) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if end, ok := event.(*stats.End); ok && status.Code(end.Error) == codes.ResourceExhausted {
		method, _ := grpc.Method(ctx)
		z.server.logRejection(ctx, method, end.Error)
	}
}

// TagConn does nothing.
func (sizes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (sizes) HandleConn(context.Context, stats.ConnStats) {}
