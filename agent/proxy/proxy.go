package proxy

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
)

const (
	maxProxyCalls = 1024 // at once, of one connection
	// MinClientPings is how often clients may ask whether the agent is there.
	MinClientPings = 5 * time.Second
)

// proxy passes the cluster API on to the controller that leads, so that tasks
// have one address for as long as they run. It reads no message and checks no
// token: that is the controller's.
type proxy struct {
	to    grpc.ClientConnInterface // follows the lease; its calls wait until a controller leads
	known map[string]method
	// session is the only token that is let in, and goes no further: the
	// connection has one of its own. "" lets in and passes on any.
	session string
	// identity answers Client.Identity; nil: it is not served.
	identity Identify
}

// Identify returns the file that has the identity of a member of a namespace, for the
// program that a session is of.
type Identify func(ctx context.Context, namespace string) (file string, err error)

// NewServer serves the cluster API of the controller that leads to the tasks of a host.
func NewServer(to grpc.ClientConnInterface) *grpc.Server {
	return (&proxy{to: to, known: methods()}).server()
}

// Serve serves the cluster API at a local address until ctx ends: to clients that
// show the session's token, by way of a connection that has a token of its own. Who they
// are to actors it answers itself.
func Serve(ctx context.Context, l net.Listener, to grpc.ClientConnInterface, session string, identity Identify) error {
	server := (&proxy{to: to, known: methods(), session: session, identity: identity}).server()
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// server is the proxy's, to be served on a local address.
func (p *proxy) server() *grpc.Server {
	return grpc.NewServer(
		grpc.ForceServerCodecV2(frameCodec{}),
		grpc.UnknownServiceHandler(p.handle),
		grpc.MaxRecvMsgSize(dial.MaxMessage),
		grpc.MaxConcurrentStreams(maxProxyCalls),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: MinClientPings, PermitWithoutStream: true}),
	)
}

func (p *proxy) handle(_ any, in grpc.ServerStream) error {
	err := p.pass(in)
	addReason(in, err)
	return err
}

// addReason puts the reason beside an error whose cause is that no controller leads.
func addReason(in grpc.ServerStream, err error) {
	if errors.Is(err, dial.ErrNoController) {
		in.SetTrailer(metadata.Pairs(clusterapi.ReasonTrailer, clusterapi.ReasonNoController))
	}
}

// pass passes one call on.
func (p *proxy) pass(in grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(in)
	service, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	own := name == clusterapi.Client_Identity_FullMethodName && p.identity != nil
	if !own && !slices.Contains(services(), service) {
		return status.Errorf(codes.Unimplemented, "hosts pass on %s only, not %s", strings.Join(services(), " and "), service)
	}
	given, _ := metadata.FromIncomingContext(in.Context())
	if !hasToken(given) {
		return status.Error(codes.Unauthenticated, "the call has no token; send \"authorization: Bearer TOKEN\" with what FRAY_CLUSTER_TOKEN holds")
	}
	if p.session != "" {
		token, _ := dial.BearerToken(given.Get("authorization"))
		if subtle.ConstantTimeCompare([]byte(token), []byte(p.session)) != 1 {
			return status.Error(codes.Unauthenticated, "the call's token is not the one of this fray run")
		}
		delete(given, "authorization")
	}
	if own {
		return p.identify(in)
	}
	noWait := len(given.Get(clusterapi.NoWaitHeader)) > 0
	delete(given, clusterapi.NoWaitHeader)
	ctx := metadata.NewOutgoingContext(in.Context(), passedOn(given))
	if noWait {
		ctx = dial.NoWait(ctx)
	}
	if m := p.known[name]; m.unary {
		return p.call(ctx, in, m)
	}
	return p.stream(ctx, in, name)
}

// identify answers Client.Identity.
func (p *proxy) identify(in grpc.ServerStream) error {
	var received frame
	if err := in.RecvMsg(&received); err != nil {
		return err
	}
	defer received.data.Free()
	var request clusterapi.IdentityRequest
	if err := proto.Unmarshal(received.data.Materialize(), &request); err != nil {
		return status.Errorf(codes.InvalidArgument, "read the request: %v", err)
	}
	file, err := p.identity(in.Context(), request.GetNamespace())
	if err != nil {
		return err
	}
	data, err := proto.Marshal(&clusterapi.IdentityResponse{File: file})
	if err != nil {
		return status.Errorf(codes.Internal, "write the answer: %v", err)
	}
	return in.SendMsg(&frame{data: mem.BufferSlice{mem.SliceBuffer(data)}})
}

func hasToken(given metadata.MD) bool {
	return slices.ContainsFunc(given.Get("authorization"), func(value string) bool {
		scheme, token, _ := strings.Cut(value, " ")
		return strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != ""
	})
}

// passedOn is what a caller sends beside its message, without what belongs to
// its connection.
func passedOn(given metadata.MD) metadata.MD {
	passed := metadata.MD{}
	for key, values := range given {
		switch {
		case strings.HasPrefix(key, ":"), strings.HasPrefix(key, "grpc-"), key == "content-type", key == "user-agent", key == "te":
		default:
			passed[key] = values
		}
	}
	return passed
}

// call passes a call on with one request and one answer. Where a second try
// does no harm, the connection makes it, with the next controller.
func (p *proxy) call(ctx context.Context, in grpc.ServerStream, m method) error {
	var request frame
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	defer request.data.Free()
	if !m.repeatable(request.data) {
		return p.once(ctx, in, m.name, &request)
	}
	var answer frame
	var header, trailer metadata.MD
	err := p.to.Invoke(ctx, m.name, &request, &answer, append(callOptions(), grpc.Header(&header), grpc.Trailer(&trailer))...)
	in.SetTrailer(trailer)
	if err != nil {
		return err
	}
	defer answer.data.Free()
	if err := in.SetHeader(header); err != nil {
		return err
	}
	return in.SendMsg(&answer)
}

// once passes on a request that must not be sent twice.
func (p *proxy) once(ctx context.Context, in grpc.ServerStream, name string, request *frame) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, err := p.to.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name, callOptions()...)
	if err != nil {
		return err
	}
	// An error of sending is that the call has ended; passDown hears how.
	_ = out.SendMsg(request)
	_ = out.CloseSend()
	err = passDown(out, in)
	in.SetTrailer(out.Trailer())
	return err
}

func callOptions() []grpc.CallOption { return []grpc.CallOption{grpc.ForceCodecV2(frameCodec{})} }

// stream passes messages on both ways, one at a time, until the controller ends
// the call. It is never begun anew: the messages before are not known here.
func (p *proxy) stream(ctx context.Context, in grpc.ServerStream, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, err := p.to.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name, callOptions()...)
	if err != nil {
		return err
	}
	go func() { // ends with the call: then in has no more messages
		if err := passUp(in, out); err != nil {
			cancel()
		}
	}()
	err = passDown(out, in)
	in.SetTrailer(out.Trailer())
	return err
}

// passUp passes on the messages of the caller.
func passUp(in grpc.ServerStream, out grpc.ClientStream) error {
	for {
		var f frame
		err := in.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			return out.CloseSend()
		}
		if err != nil {
			return err
		}
		err = out.SendMsg(&f)
		f.data.Free()
		if errors.Is(err, io.EOF) {
			return nil // it has ended; passDown hears how
		}
		if err != nil {
			return err
		}
	}
}

// passDown passes on the messages of the controller, and returns how it ended.
func passDown(out grpc.ClientStream, in grpc.ServerStream) error {
	header, err := out.Header()
	if err != nil {
		return err
	}
	if err := in.SendHeader(header); err != nil {
		return err
	}
	for {
		var f frame
		err := out.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = in.SendMsg(&f)
		f.data.Free()
		if err != nil {
			return err
		}
	}
}
