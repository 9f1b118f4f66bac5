// Package hosts is the controller's end of the streams to hosts: it keeps the newest report
// of each host that is connected, for the loop, and sends assignments that the loop has
// written to the store.
//
// It leaves out what follows from a report, and the store, which stays the other way
// between hosts and controller. A stream that ends is no sign that its hosts have. Start
// with [Hub], then [Table].
package hosts

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/state"
)

// Hub serves hosts for the life of a process: streams belong to the term in which they began.
type Hub struct {
	clusterapi.UnimplementedHostsServer
	verify Verify
	log    *slog.Logger
	key    atomic.Pointer[sealed.LeaderKey] // of the next term; nil: hosts do not speak through relays
	table  atomic.Pointer[Table]
}

// Verify returns what a token asserts, for hosts that speak through the stream of another.
type Verify func(ctx context.Context, token string) (token.Claims, error)

var _ clusterapi.HostsServer = (*Hub)(nil)

// New returns a hub that serves no host until Lead.
func New(log *slog.Logger, verify Verify) *Hub {
	return &Hub{log: log, verify: verify}
}

// Lead begins a term: what hosts report is in its table. wake receives a token when the
// loop is to look.
func (h *Hub) Lead(wake chan<- struct{}) *Table {
	t := newTable(wake)
	t.key = h.key.Load()
	h.table.Store(t)
	return t
}

// Live is how many hosts are connected and heard.
func (h *Hub) Live() int {
	if t := h.table.Load(); t != nil {
		return t.live()
	}
	return 0
}

// Streams is how many streams there are: relays speak for several hosts by one.
func (h *Hub) Streams() int {
	if t := h.table.Load(); t != nil {
		return t.streams()
	}
	return 0
}

// Connect serves a stream.
func (h *Hub) Connect(stream clusterapi.Hosts_ConnectServer) error {
	t := h.table.Load()
	who := caller.Of(stream.Context())
	switch {
	case who.Kind != caller.Host:
		return status.Error(codes.PermissionDenied, "this is for hosts")
	case t == nil:
		return status.Error(codes.Unavailable, "this controller does not lead yet")
	}
	s := &session{hub: h, table: t, who: who, wake: make(chan struct{}, 1), hosts: map[uint32]speaker{}, out: map[uint32]*outgoing{}}
	t.opened(s)
	defer t.closed(s)
	ctx, cancel := context.WithCancel(stream.Context())
	var sending sync.WaitGroup
	sending.Go(func() { s.send(ctx, stream) })
	defer sending.Wait()
	defer cancel()
	for {
		batch, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.table.Load() != t {
			return status.Error(codes.Unavailable, "another term has begun")
		}
		if err := s.receiveAll(ctx, batch.GetMessages()); err != nil {
			return err
		}
	}
}

// maxHosts is how many hosts may speak through one stream.
const maxHosts = 4096

// session is one stream. Its fields but those that do not change belong to the table's mutex.
type session struct {
	hub   *Hub
	table *Table
	who   caller.Caller
	wake  chan struct{}

	verdicts    map[string]verdict          // on tokens of messages that are being taken in; the receiver's alone
	hosts       map[uint32]speaker          // by their numbers in the stream
	relayed     map[uint32]*relayed         // those of them that the stream's owner cannot read, by the same
	authorities *clusterapi.HostAuthorities // that wait to be sent; nil: none do
	out         map[uint32]*outgoing        // what waits to be sent, at most one for a host
	gathering   bool                        // more is about to be
}

// outgoing is what is to be sent to a host: newer news take the place of older ones.
type outgoing struct {
	welcome    *clusterapi.HostWelcome
	received   uint64
	whole      bool
	assignment *clusterapi.HostAssignment
	rejected   string
	// authorities are sent so to hosts behind a relay; others have them by their stream.
	authorities *clusterapi.HostAuthorities
}

// receiveAll takes in messages, and answers them in one.
func (s *session) receiveAll(ctx context.Context, messages []*clusterapi.HostMessage) error {
	s.verifyAll(ctx, messages)
	defer clear(s.verdicts)
	if len(messages) > 1 {
		s.table.gather(s, true)
		defer s.table.gather(s, false)
	}
	for _, m := range messages {
		if err := s.receive(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// verdict is what a token asserts, or why it does not count.
type verdict struct {
	claims token.Claims
	err    error
}

// verifyAll checks the tokens of messages at the same time: the key of each may have to be looked
// up.
func (s *session) verifyAll(ctx context.Context, messages []*clusterapi.HostMessage) {
	tokens := map[string]bool{}
	for _, m := range messages {
		if text := m.GetHello().GetToken(); text != "" {
			tokens[text] = true
		}
	}
	if len(tokens) < 2 {
		return
	}
	var mu sync.Mutex
	var lookups sync.WaitGroup
	s.verdicts = map[string]verdict{}
	for text := range tokens {
		lookups.Go(func() {
			claims, err := s.hub.verify(ctx, text)
			mu.Lock()
			defer mu.Unlock()
			s.verdicts[text] = verdict{claims, err}
		})
	}
	lookups.Wait()
}

// verify returns what a token asserts.
func (s *session) verify(ctx context.Context, text string) (token.Claims, error) {
	if v, known := s.verdicts[text]; known {
		return v.claims, v.err
	}
	return s.hub.verify(ctx, text)
}

// receive takes in a message of a host. An error ends the stream: its hosts connect again.
func (s *session) receive(ctx context.Context, m *clusterapi.HostMessage) error {
	if hello := m.GetHello(); hello != nil {
		begin := s.identify
		if len(hello.GetOffer()) > 0 {
			begin = s.accept
		}
		why, err := begin(ctx, m.GetNumber(), hello)
		if err != nil {
			return err
		}
		if why != "" {
			s.hub.log.Warn("a host's stream rejected", "slice", hello.GetSlice(), "host", hello.GetHost(), "through", s.who.Slice, "reason", why)
			s.table.reject(s, m.GetNumber(), why)
			return nil
		}
	}
	switch {
	case m.GetGone():
		s.table.leave(s, m.GetNumber())
	case len(m.GetSealed()) > 0:
		s.unseal(m)
	case m.GetReport() != nil && s.table.relayed(s, m.GetNumber()) == nil:
		s.table.report(s, m.GetNumber(), m.GetReport())
	}
	return nil
}

// Why hosts are rejected.
const (
	tooMany     = "too many hosts speak through one stream"
	othersToken = "the token is another host's"
)

// identify has a host speak through the stream, and returns why it may not, or "". That the key
// of its token cannot be looked up now is an error, and no verdict on the host.
func (s *session) identify(ctx context.Context, number uint32, hello *clusterapi.HostHello) (why string, err error) {
	slice, host := s.who.Slice, s.who.Host
	if hello.GetToken() != "" {
		claims, err := s.verify(ctx, hello.GetToken())
		switch {
		case token.Rejected(err):
			return err.Error(), nil
		case err != nil:
			return "", status.Error(codes.Unavailable, err.Error())
		case claims.Subject != token.SubjectHost:
			return "the token is not a host's", nil
		}
		slice, host = claims.Signer.Slice, claims.Signer.Host
	}
	if slice != hello.GetSlice() || host != int(hello.GetHost()) {
		return othersToken, nil
	}
	if s.table.relayed(s, number) != nil { // the number is another host's from now on
		s.table.leave(s, number)
	}
	if !s.table.hello(s, number, hello) {
		return tooMany, nil
	}
	return "", nil
}

// send sends what waits until ctx ends. A client that reads slowly holds up nothing but
// this.
func (s *session) send(ctx context.Context, stream clusterapi.Hosts_ConnectServer) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		batch := s.table.outgoing(s)
		if len(batch.Messages) == 0 && batch.Authorities == nil {
			continue
		}
		if err := stream.Send(batch); err != nil {
			return // the stream has ended, as its receiver learns
		}
	}
}

// to is what waits to be sent to a host; the table's mutex is held.
func (s *session) to(number uint32) *outgoing {
	o := s.out[number]
	if o == nil {
		o = &outgoing{}
		s.out[number] = o
	}
	if !s.gathering {
		s.signal()
	}
	return o
}

func (s *session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// message is what is sent.
func (o *outgoing) message(number uint32) *clusterapi.ControllerMessage {
	return &clusterapi.ControllerMessage{
		Number: number, Welcome: o.welcome, Received: o.received, Whole: o.whole, Assignment: o.assignment, Rejected: o.rejected,
	}
}

// maxPushed is the largest assignment that is sent with its content, in bytes; larger ones
// are read in the store.
const maxPushed = 256 << 10

// version is an assignment as it is in the store.
func version(object state.Generation, data []byte) *clusterapi.HostAssignment {
	a := &clusterapi.HostAssignment{Object: int64(object)}
	if len(data) <= maxPushed {
		a.Data = data
	}
	return a
}

// Pace of hosts, by how many are connected: few report often.
const (
	heartbeatFew  = 4 * time.Second
	heartbeatMany = 6 * time.Second
	many          = 4096
	// connectRate is how many streams may come back in a second after a takeover, hostRate how
	// many hosts: two cores shake hands, check tokens and take in whole reports.
	connectRate = 300
	hostRate    = 4000
	leastSpread = 500 * time.Millisecond
	mostSpread  = 8 * time.Second
	// storeRate is how many hosts without streams may write to the store in a second: what they
	// write is to be listed and read. A host writes each mostStored at least, which leaves it two
	// writes before it counts as lost.
	storeRate  = 1500
	mostStored = 15 * time.Second
)

// welcome is how hosts of a controller with so many streams and hosts are to behave.
func welcome(streams, hosts int) *clusterapi.HostWelcome {
	heartbeat := heartbeatFew
	if hosts > many {
		heartbeat = heartbeatMany
	}
	spread := min(max(leastSpread, time.Duration(streams)*time.Second/connectRate, time.Duration(hosts)*time.Second/hostRate), mostSpread)
	stored := min(time.Duration(hosts)*time.Second/storeRate, mostStored)
	return &clusterapi.HostWelcome{Heartbeat: heartbeat.Milliseconds(), Spread: spread.Milliseconds(), StoreHeartbeat: stored.Milliseconds()}
}
