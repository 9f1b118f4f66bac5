package hostlink

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
)

// Limits of a relay.
const (
	// maxMembers is how many hosts it speaks for, maxNumbers how many each of them: with its
	// packed tasks.
	maxMembers = 256
	maxNumbers = 256
	// maxPassed is the largest message in bytes; maxWaiting is how many wait for the stream
	// to the controller, and maxAnswers for a member.
	maxPassed  = 512 << 10
	maxWaiting = 32
	maxAnswers = 32
	// streamPatience is how long a member waits for the relay's own stream in one call: members
	// that call again and again would keep busy the machines that are to connect.
	streamPatience = 10 * time.Second
	// together is how long messages that may wait are kept for others, and maxTogether how
	// many are sent at once.
	together    = 250 * time.Millisecond
	maxTogether = 64
)

// Relay passes on what other hosts say, by the stream of a client to the controller. It can
// read none of it.
type Relay struct {
	clusterapi.UnimplementedHostsServer
	client *Client
	slots  chan struct{} // as many as there may be members
}

var _ clusterapi.HostsServer = (*Relay)(nil)

// NewRelay returns a relay, which serves while the client's stream goes to the controller
// itself.
func NewRelay(c *Client) *Relay { return &Relay{client: c, slots: make(chan struct{}, maxMembers)} }

// upstream is a stream to the controller as others speak by it.
type upstream struct {
	waiting chan *clusterapi.HostMessage // for the controller
	live    chan struct{}                // closed once the controller has answered
	over    chan struct{}                // closed when the stream has ended
	first   sync.Once

	mu       sync.Mutex
	passages map[uint32]*passage // by the numbers of the client's stream
}

func newUpstream() *upstream {
	return &upstream{
		waiting: make(chan *clusterapi.HostMessage, maxWaiting), live: make(chan struct{}), over: make(chan struct{}),
		passages: map[uint32]*passage{},
	}
}

func (u *upstream) answered() { u.first.Do(func() { close(u.live) }) }

func (u *upstream) end() { close(u.over) }

// passage is the stream of a member.
type passage struct {
	up      *upstream
	down    chan *clusterapi.ControllerMessage
	cancel  context.CancelCauseFunc
	numbers map[uint32]uint32 // of the client's stream, by those of the member's; the receiver's alone
	members map[uint32]uint32 // the reverse; it belongs to the upstream's mutex
}

var (
	errNoStream = status.Error(codes.FailedPrecondition, "this host has no stream of its own to the controller now")
	errNotYet   = status.Error(codes.Aborted, "this host has no stream of its own to the controller yet")
	errOver     = status.Error(codes.Unavailable, "the relay's stream to the controller has ended")
	errSlow     = status.Error(codes.ResourceExhausted, "the host takes too little of what the controller sends")
	errCrowded  = status.Error(codes.ResourceExhausted, "the relay speaks for as many hosts as it may")
)

// Connect serves a member until its stream or the relay's own ends.
func (r *Relay) Connect(stream clusterapi.Hosts_ConnectServer) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		return errCrowded
	}
	up, err := r.client.serving(stream.Context(), callerHasNews(stream.Context()))
	if err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.Pairs("relay", "serves")); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	p := &passage{
		up: up, down: make(chan *clusterapi.ControllerMessage, maxAnswers), cancel: cancel,
		numbers: map[uint32]uint32{}, members: map[uint32]uint32{},
	}
	// The receiver ends when this returns, as the stream does.
	go func() { cancel(p.receive(ctx, r.client, stream)) }()
	return p.send(ctx, stream)
}

// newsKey is a key of a call's metadata, by which a member that has news says so.
const newsKey = "news"

// withNews is the context of a call by a member that has news.
func withNews(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, newsKey, "yes")
}

// callerHasNews reports whether the member that calls has news.
func callerHasNews(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, newsKey)) > 0
}

// serving returns the client's stream to the controller once it has one, for a member with news or
// without.
func (c *Client) serving(ctx context.Context, news bool) (*upstream, error) {
	patience := time.NewTimer(streamPatience)
	defer patience.Stop()
	hurry := c.pause.hurry
	if news {
		hurry = c.pause.press
	}
	for {
		c.mu.Lock()
		up, changed, relayed := c.up, c.upChanged, c.leader != nil
		c.mu.Unlock()
		var live, over chan struct{}
		switch {
		case relayed:
			return nil, errNoStream
		case up != nil:
			live, over = up.live, up.over
		default:
			select {
			case hurry <- struct{}{}:
			default:
			}
		}
		select {
		case <-live:
			return up, nil
		case <-over:
		case <-changed:
		case <-patience.C:
			return nil, errNotYet
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// receive passes on what the member says, and returns why it ends.
func (p *passage) receive(ctx context.Context, c *Client, stream clusterapi.Hosts_ConnectServer) error {
	defer p.leave()
	for {
		batch, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return status.Error(codes.OK, "")
		}
		if err != nil {
			return err
		}
		for _, m := range batch.GetMessages() {
			if err := p.pass(ctx, c, m); err != nil {
				return err
			}
		}
	}
}

// pass passes on a message of the member. It waits while many others wait, and so does the
// member.
func (p *passage) pass(ctx context.Context, c *Client, m *clusterapi.HostMessage) error {
	begins := len(m.GetHello().GetOffer()) > 0
	switch number, known := p.numbers[m.GetNumber()]; {
	case m.GetReport() != nil || m.GetHello() != nil && !begins:
		return status.Error(codes.InvalidArgument, "a relay takes only sealed messages")
	case proto.Size(m) > maxPassed:
		return status.Error(codes.ResourceExhausted, "the message is too large for a relay")
	case known:
		m.Number = number
	case !begins:
		return nil // of a host whose hello was lost
	case len(p.numbers) >= maxNumbers:
		return errCrowded
	default:
		p.numbers[m.GetNumber()] = p.up.join(c, p, m.GetNumber())
		m.Number = p.numbers[m.GetNumber()]
	}
	if m.GetGone() {
		p.up.forget(m.GetNumber())
		for member, number := range p.numbers {
			if number == m.GetNumber() {
				delete(p.numbers, member)
			}
		}
	}
	select {
	case p.up.waiting <- m:
		return nil
	case <-p.up.over:
		return errOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join gives a host of a member a number of the client's stream.
func (u *upstream) join(c *Client, p *passage, member uint32) uint32 {
	c.mu.Lock()
	c.last++
	number := c.last
	c.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.passages[number], p.members[number] = p, member
	return number
}

func (u *upstream) forget(number uint32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.passages[number]; p != nil {
		delete(p.members, number)
		delete(u.passages, number)
	}
}

// leave has it known that the relay speaks for the member no more.
func (p *passage) leave() {
	for _, number := range p.numbers {
		p.up.forget(number)
		select {
		case p.up.waiting <- &clusterapi.HostMessage{Number: number, Gone: true}:
		case <-p.up.over:
			return
		}
	}
}

// deliver hands over what the controller sends to a host behind the relay. A member that
// reads slowly loses its stream.
func (u *upstream) deliver(m *clusterapi.ControllerMessage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.passages[m.GetNumber()]
	if p == nil {
		return
	}
	select {
	case p.down <- &clusterapi.ControllerMessage{Number: p.members[m.GetNumber()], Sealed: m.GetSealed(), Rejected: m.GetRejected()}:
	default:
		p.cancel(errSlow)
	}
}

// send sends what the controller sends to the member, until one of the streams ends.
func (p *passage) send(ctx context.Context, stream clusterapi.Hosts_ConnectServer) error {
	for {
		batch := &clusterapi.ControllerMessages{}
		select {
		case m := <-p.down:
			batch.Messages = append(batch.Messages, m)
		case <-p.up.over:
			return errOver
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for more := true; more && len(batch.Messages) < maxAnswers; {
			select {
			case m := <-p.down:
				batch.Messages = append(batch.Messages, m)
			default:
				more = false
			}
		}
		if err := stream.Send(batch); err != nil {
			return err
		}
	}
}

// gather adds what waits to messages that are to be sent at once.
func (u *upstream) gather(messages []*clusterapi.HostMessage) []*clusterapi.HostMessage {
	for len(messages) < maxTogether {
		select {
		case m := <-u.waiting:
			messages = append(messages, m)
		default:
			return messages
		}
	}
	return messages
}

// mayWait reports whether messages may wait for those of other hosts: there are some, and these
// are heartbeats.
func (u *upstream) mayWait(messages []*clusterapi.HostMessage) bool {
	u.mu.Lock()
	others := len(u.passages) > 0
	u.mu.Unlock()
	return others && !slices.ContainsFunc(messages, func(m *clusterapi.HostMessage) bool {
		return !m.GetPatient() && (m.GetHello() != nil || m.GetGone() || m.GetReport() == nil || !IsHeartbeat(m.GetReport()))
	})
}
