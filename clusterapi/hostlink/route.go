package hostlink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/sleep"
)

// routePatience is how long a host may take to begin to relay: longer than it waits for a stream
// of its own, since it may have more to do than to relay.
const routePatience = streamPatience + 5*time.Second

// Route is a way to the controller through another host.
type Route struct {
	Conn
	// Leader is the public key of the controller that leads, to which messages are sealed. It is
	// called once the host relays: before, another controller may lead.
	Leader func(ctx context.Context) ([]byte, error)
	// Ended is called once the route was used, or could not be; not where the client gives it up to
	// begin anew.
	Ended func(Outcome)
}

// Outcome is how a route did, a closed set.
type Outcome int

// The outcomes.
const (
	Served  Outcome = iota // the controller took part
	Waited                 // the host looks for a controller to relay to
	Refused                // the host speaks through another one itself
	Failed                 // it was not reached, or does not relay
	Silent                 // it takes streams and passes nothing on
)

// Relays are the hosts through which a client may speak.
type Relays interface {
	// Count is how many there are; none: the client's stream goes to the controller itself.
	Count() int
	// Route is the way through the nth, of which a lower one is better; nil: it is not worth
	// a try now. An error says that it could not be found out: that is no word against the host.
	Route(ctx context.Context, nth int) (*Route, error)
	// Again is after which time another try is worth it for a client whose stream goes to the
	// controller itself.
	Again() time.Duration
}

// path is a stream that has begun.
type path struct {
	stream clusterapi.Hosts_ConnectClient
	ctx    context.Context // ends with it
	cancel context.CancelCauseFunc
	conn   Conn
	route  *Route // nil: it goes to the controller itself
	leader []byte // to which messages are sealed on the route
}

// close ends the stream. The connection to the controller stays for the next one, unless
// hangUp ends it, too.
func (p *path) close(err error) {
	p.cancel(err)
	if p.route != nil {
		_ = p.conn.Close() // nothing is under way any more
	}
}

// A client waits for a relay that looks for a controller before it looks for one itself: for once
// to twice waitPatience at first, so that the members of a slice do not all give up at a time, and
// for twice as long after each try that no controller answers, up to longestWait. After a takeover
// one handshake for a slice is enough, and a controller that is late with the relays of many slices
// would be later still with the handshakes of all their hosts.
const (
	waitPatience = 30 * time.Second
	longestWait  = 2 * time.Minute
)

// relayWait is how long a client has waited for a relay that has no stream yet.
type relayWait struct {
	since time.Time     // zero: it does not wait
	least time.Duration // that it waits before it tries by itself
}

// over reports whether the client has waited for long enough. It waits anew then, for longer.
func (w *relayWait) over(now time.Time) bool {
	switch {
	case w.since.IsZero():
		*w = relayWait{since: now, least: waitPatience + rand.N(waitPatience)}
		return false
	case now.Sub(w.since) < w.least:
		return false
	}
	*w = relayWait{since: now, least: min(2*w.least, longestWait)}
	return true
}

// open begins a stream: through the best relay that has one itself, or to the controller.
func (c *Client) open(ctx context.Context) (*path, error) {
	p, err := c.relayed(ctx, ctx)
	switch {
	case p != nil:
		c.wait = relayWait{}
		return p, nil
	case !errors.Is(err, errWaits):
		c.wait = relayWait{}
	case !c.wait.over(time.Now()):
		return nil, err
	}
	// The connection stays after a controller was not available, and follows who leads then:
	// where many connect at a time, one that was made is not to be made again because the
	// controller was late.
	if c.conn == nil {
		conn, err := c.cfg.Dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect to the controller: %w", err)
		}
		c.conn = conn
	}
	p = &path{conn: c.conn}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	if p.stream, err = clusterapi.NewHostsClient(c.conn).Connect(p.ctx); err != nil {
		p.close(err)
		return nil, fmt.Errorf("begin a stream: %w", err)
	}
	return p, nil
}

// errWaits says that the best relay has no stream yet, or that the store could not be read to find it:
// a stream to the controller itself needs the same store.
var errWaits = errors.New("the relay looks for the controller that leads")

// relayed begins a stream through a relay; nil: none serves, for errWaits maybe. It is sought until
// the first context ends, and lasts until the other one does.
func (c *Client) relayed(ctx, lasting context.Context) (*path, error) {
	if c.cfg.Relays == nil {
		return nil, nil
	}
	for nth := range c.cfg.Relays.Count() {
		route, err := c.cfg.Relays.Route(ctx, nth)
		switch {
		case err != nil:
			c.cfg.Log.Debug("no way to a relay is known", "error", err)
			return nil, errWaits
		case route == nil:
			continue
		}
		p, err := route.open(ctx, lasting, c.whenNews())
		if errors.Is(err, errNews) { // the call that waits does not say so
			return c.relayed(ctx, lasting)
		}
		if err == nil {
			return p, nil
		}
		c.cfg.Log.Debug("no stream through a relay", "error", err)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		how := outcome(false, err)
		if route.Ended(how); how == Waited {
			return nil, errWaits
		}
	}
	return nil, nil
}

var (
	errRelaySilent = errors.New("the relay does not answer")
	errNews        = errors.New("the host has news since it waits for the relay")
	errKeyUnknown  = errors.New("the key of the controller that leads is not known")
)

// open begins a stream through the route, which the relay confirms once it has one itself. It
// waits until the first context ends, or until there is news that the call did not state; the stream
// lasts until the other context ends.
func (r *Route) open(ctx, lasting context.Context, news <-chan struct{}) (*path, error) {
	p := &path{conn: r.Conn, route: r}
	p.ctx, p.cancel = context.WithCancelCause(lasting)
	waits := context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
	patience := time.AfterFunc(routePatience, func() { p.cancel(errRelaySilent) })
	calling, stop := p.ctx, func() {}
	if isClosed(news) {
		calling = withNews(calling)
	} else {
		stop = untilNews(news, p.cancel)
	}
	var err error
	if p.stream, err = clusterapi.NewHostsClient(r.Conn).Connect(calling); err == nil {
		err = confirmed(p.stream)
	}
	if stop(); errors.Is(context.Cause(p.ctx), errNews) {
		err = errNews
	}
	if !patience.Stop() {
		err = errRelaySilent
	}
	if err == nil {
		if p.leader, err = r.Leader(ctx); err != nil {
			err = fmt.Errorf("%w: %w", errKeyUnknown, err)
		}
	}
	if !waits() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.close(err)
		return nil, fmt.Errorf("begin a stream through a relay: %w", err)
	}
	return p, nil
}

// untilNews cancels a call with errNews once there is news, unless it is stopped before.
func untilNews(news <-chan struct{}, cancel context.CancelCauseFunc) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-news:
			cancel(errNews)
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// confirmed waits for the relay's header. Without one the stream has ended, for a reason.
func confirmed(stream clusterapi.Hosts_ConnectClient) error {
	header, err := stream.Header()
	if err == nil && header == nil {
		if _, err = stream.Recv(); err == nil {
			err = errRelaySilent
		}
	}
	return err
}

// outcome is how a route did by how its stream ended.
func outcome(answered bool, err error) Outcome {
	switch {
	case errors.Is(err, errUnacknowledged), errors.Is(err, errRelaySilent):
		return Silent
	case answered:
		return Served
	case status.Code(err) == codes.Aborted, errors.Is(err, errKeyUnknown):
		return Waited
	case status.Code(err) == codes.FailedPrecondition, errors.Is(err, errLeft):
		return Refused
	}
	return Failed
}

// improve looks now and then for a relay while a stream goes to the controller itself, and
// begins the next one through that. It ends with the stream, which ends only then for the hosts
// that speak by it.
func (c *Client) improve(ctx, all context.Context, better chan<- *path) {
	for sleep.For(ctx, c.cfg.Relays.Again()) {
		p, _ := c.relayed(ctx, all)
		if p == nil {
			continue
		}
		select {
		case better <- p:
		case <-ctx.Done():
			p.close(context.Cause(ctx))
		}
		return
	}
}
