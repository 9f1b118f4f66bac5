package scale

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/state/store"
)

// wire is the network between machines.
type wire struct {
	world *world

	mu       sync.Mutex
	at       map[string]*server // by address
	from, to map[string]map[*begun]bool
}

// newWire returns a network without machines.
func newWire(w *world) *wire {
	return &wire{world: w, at: map[string]*server{}, from: map[string]map[*begun]bool{}, to: map[string]map[*begun]bool{}}
}

// begin notes a stream, until its context ends.
func (w *wire) begin(ctx context.Context, o *begun) {
	o.speaker = speakerOf(o.from)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range o.ends(w) {
		if end.of[end.name] == nil {
			end.of[end.name] = map[*begun]bool{}
		}
		end.of[end.name][o] = true
	}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		o.over = true
		for _, end := range o.ends(w) {
			if delete(end.of[end.name], o); len(end.of[end.name]) == 0 {
				delete(end.of, end.name)
			}
		}
	})
}

// end is one of a stream's.
type end struct {
	of   map[string]map[*begun]bool
	name string
}

func (o *begun) ends(w *wire) [2]end { return [2]end{{w.from, o.from}, {w.to, o.to}} }

// server is what serves at an address.
type server struct {
	fingerprint string
	hosts       clusterapi.HostsServer
	// admit is what a token makes of a call's context; nil: all are served.
	admit func(ctx context.Context, token string) (context.Context, error)
}

// begun is a stream.
type begun struct {
	from, to string
	speaker  string // the slice that begins it, which may have the name of an earlier one
	cancel   context.CancelCauseFunc
	through  []*begun // streams of the relay that it goes to, by which that passes on what it says
	over     bool     // belongs to the wire's mutex
}

// serve has an address served, until the function that it returns is called.
func (w *wire) serve(address string, s *server) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[address] = s
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.at[address] == s {
			delete(w.at, address)
		}
		for o := range w.to[address] {
			o.cancel(errGone)
		}
	}
}

var (
	errGone = status.Error(codes.Unavailable, "the other end is gone")
	errCut  = status.Error(codes.Unavailable, "the stream was cut")
)

// cutStreams ends the streams that a machine has begun.
func (w *wire) cutStreams(from string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.from[from] {
		o.cancel(errCut)
	}
}

// connector is how a machine connects to others.
func (w *wire) connector(from string) dial.Connector {
	return func(address, fingerprint string, token dial.Token) (dial.Conn, error) {
		return &line{wire: w, from: from, address: address, fingerprint: fingerprint, token: token}, nil
	}
}

// line is a connection.
type line struct {
	within
	wire                       *wire
	from, address, fingerprint string
	token                      dial.Token
}

// NewStream begins a stream, if the address is served under the fingerprint.
func (l *line) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	l.wire.mu.Lock()
	to := l.wire.at[l.address]
	l.wire.mu.Unlock()
	if to == nil || to.fingerprint != l.fingerprint {
		return nil, errGone
	}
	if !l.reached() {
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
		}
		return nil, errGone
	}
	token := ""
	if to.admit != nil { // a token is dear where many connect
		var err error
		if token, err = l.token(ctx); err != nil {
			return nil, status.Error(codes.Unauthenticated, err.Error())
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	o := &begun{from: l.from, to: l.address, cancel: cancel}
	l.wire.begin(ctx, o)
	return within{to: admitted{line: l, stream: o, to: to, token: token, cancel: cancel}}.NewStream(ctx, desc, method, opts...)
}

func (l *line) reached() bool {
	return l.wire.world.reaches(l.from) && l.wire.world.reaches(l.address)
}

// admitted serves the streams of a line.
type admitted struct {
	clusterapi.UnimplementedHostsServer
	line   *line
	stream *begun
	to     *server
	token  string
	cancel context.CancelCauseFunc
}

// Connect serves a stream.
func (a admitted) Connect(s clusterapi.Hosts_ConnectServer) error {
	ctx := s.Context()
	if a.to.admit != nil {
		var err error
		if ctx, err = a.to.admit(ctx, a.token); err != nil {
			a.cancel(err)
			return err
		}
	}
	err := a.to.hosts.Connect(lossy{Hosts_ConnectServer: s, line: a.line, stream: a.stream, ctx: ctx})
	a.cancel(err)
	return err
}

// lossy loses messages while an end is cut off, and one now and then.
type lossy struct {
	clusterapi.Hosts_ConnectServer
	line   *line
	stream *begun
	ctx    context.Context
}

// Context is that of the caller.
func (l lossy) Context() context.Context { return l.ctx }

// SendHeader says that a relay serves a stream.
func (l lossy) SendHeader(header metadata.MD) error {
	w := l.line.wire
	w.mu.Lock()
	for o := range w.from[l.stream.to] {
		if isController(o.to) {
			l.stream.through = append(l.stream.through, o)
		}
	}
	w.mu.Unlock()
	return l.Hosts_ConnectServer.SendHeader(header)
}

const (
	lostMessages = 500              // one of so many
	noticed      = 20 * time.Second // until when a stream ends that has lost a message to a host
)

// Recv waits for a message that is not lost.
func (l lossy) Recv() (*clusterapi.HostMessages, error) {
	for {
		m, err := l.Hosts_ConnectServer.Recv()
		if err != nil || l.line.reached() && !l.line.wire.world.chance(lostMessages) {
			return m, err
		}
	}
}

// Send sends a message, which may be lost. The stream ends by that a while later, as a connection
// does that has lost something: hosts need not find out what they were not told.
func (l lossy) Send(m *clusterapi.ControllerMessages) error {
	if w := l.line.wire.world; !l.line.reached() || w.chance(lostMessages) {
		time.AfterFunc(w.between(0, noticed), func() { l.stream.cancel(errCut) })
		return l.ctx.Err()
	}
	return l.Hosts_ConnectServer.Send(m)
}

// door is the bucket as one process reaches it.
type door struct {
	store.Store
	world   *world
	machine string
	ctx     context.Context // of the process, which does nothing any more once it has ended
}

const lostRequests = 1000 // one of so many

// WriteInterval is a bucket's.
func (door) WriteInterval() time.Duration { return time.Second }

// through makes a request.
func through[T any](ctx context.Context, d door, latency time.Duration, do func() (T, error)) (T, error) {
	var zero T
	select {
	case <-time.After(latency):
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case <-d.ctx.Done():
		return zero, context.Cause(d.ctx)
	}
	switch {
	case !d.world.reaches(d.machine) || d.world.chance(lostRequests):
		return zero, errGone
	case d.world.chance(lostRequests): // the answer is
		_, _ = do()
		return zero, errGone
	}
	return do()
}

// Get reads an object. It tries twice, as a bucket's client does: a look into the mailbox makes
// thousands of reads.
func (d door) Get(ctx context.Context, key string) (object store.Object, err error) {
	for range 2 {
		object, err = through(ctx, d, readLatency, func() (store.Object, error) { return d.Store.Get(ctx, key) })
		if !errors.Is(err, errGone) {
			break
		}
	}
	return object, err
}

// Put writes an object.
func (d door) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	return through(ctx, d, writeLatency, func() (store.Generation, error) {
		object, err := d.Store.Put(ctx, key, data, want)
		if err == nil {
			d.world.assign(key, object)
		}
		return object, err
	})
}

// List lists objects.
func (d door) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	return through(ctx, d, readLatency, func() ([]store.Attrs, error) { return d.Store.List(ctx, prefixes...) })
}

// Delete removes an object.
func (d door) Delete(ctx context.Context, key string) error {
	_, err := through(ctx, d, writeLatency, func() (struct{}, error) {
		d.world.assign(key, store.Absent)
		return struct{}{}, d.Store.Delete(ctx, key)
	})
	return err
}
