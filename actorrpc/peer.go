package actorrpc

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/backoff"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// askTimeout is for questions about an actor's methods.
const askTimeout = 10 * time.Second

// leastAttempt is how long connecting to a server that was silent may take at least.
const leastAttempt = 500 * time.Millisecond

// errRetired is of a transport that was forgotten: another is to be asked for.
var errRetired = errors.New("the address was not used")

// peer is one address at which frames are spoken. All handles share its one
// connection, and its queue has their calls. When the connection breaks it connects anew.
type peer struct {
	shared
	address string
	dialer  *dialer

	// mu guards the queue, with its deliveries' numbers and receipts. An actor's lock may be held
	// when it is taken, not the other way round.
	mu    sync.Mutex
	queue queue
}

var (
	_ transport      = (*peer)(nil)
	_ connectionUser = (*peer)(nil)
)

func newPeer(s shared, address string) *peer {
	p := &peer{shared: s, address: address}
	p.dialer = newDialer(s, address, p.forgetProcess)
	return p
}

// dialAttempt is an attempt to connect, for all who need it.
type dialAttempt struct {
	done   chan struct{}
	err    error // valid once done is closed
	silent bool  // the server was: the calls that it has wait for one more try only
}

// ready connects, where that is needed.
func (p *peer) ready(ctx context.Context) error {
	p.mu.Lock()
	if p.queue.conn != nil && !p.queue.leaving {
		p.mu.Unlock()
		return nil
	}
	if p.queue.retired {
		p.mu.Unlock()
		return errRetired
	}
	a := p.queue.dialing
	if a == nil {
		a = p.startDialing(false)
	}
	p.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startDialing begins an attempt to connect. It needs the lock.
func (p *peer) startDialing(silent bool) *dialAttempt {
	a := &dialAttempt{done: make(chan struct{}), silent: silent}
	if p.queue.conn != nil { // the server is leaving: another may come to its address
		a.err = errLeaving(p.address)
		close(a.done)
		return a
	}
	p.queue.dialing = a
	if !p.tasks.Run(func(ctx context.Context) { p.connect(ctx, a) }) {
		p.queue.dialing, a.err = nil, errClientClosed()
		close(a.done)
	}
	return a
}

// connect opens a connection. While calls are without an answer it tries until it
// is known what became of them, or the server has been silent for too long.
func (p *peer) connect(ctx context.Context, a *dialAttempt) {
	limit, within := time.Now().Add(p.config.ResolveTimeout), connectTimeout
	if a.silent {
		limit, within = time.Now(), min(connectTimeout, max(leastAttempt, p.config.Keepalive.Patience/2))
	}
	for failures := 1; ; failures++ {
		p.mu.Lock()
		last, unanswered := p.queue.process, p.queue.window.open > 0
		p.mu.Unlock()
		conn, err := p.open(ctx, within, last, unanswered)
		within = connectTimeout
		if err == nil {
			p.adopt(conn, a)
			return
		}
		p.config.Log.Debug("connecting failed", "address", p.address, "error", err)
		for _, d := range p.takeOutUndeliverable(ctx, err, !time.Now().Before(limit)) {
			d.silent = a.silent
			d.owner.lost(maybeExecuted())
		}
		p.mu.Lock()
		if p.queue.window.open == 0 {
			p.queue.dialing = nil
			a.err = err
			p.mu.Unlock()
			close(a.done)
			return
		}
		p.mu.Unlock()
		wait := time.NewTimer(backoff.After(failures))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// open tries to connect for so long.
func (p *peer) open(ctx context.Context, within time.Duration, last string, unanswered bool) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return p.dialer.open(ctx, last, unanswered)
}

// forgetProcess has the next process count as another than the last.
func (p *peer) forgetProcess() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.process = ""
}

// takeOutUndeliverable takes out of the window the calls which, after an attempt to connect has
// failed, need not wait for the next, and returns those that may have run. expired: none need.
func (p *peer) takeOutUndeliverable(ctx context.Context, err error, expired bool) []*delivery {
	var e *rpcerror.Error
	// No process has a port that refuses connections: the one that had it is gone.
	all := expired || ctx.Err() != nil || errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &e) && final(e.Code)
	p.mu.Lock()
	calls := p.queue.window.all()
	p.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, askTimeout) // for all: they are not to wait for each other
	defer cancel()
	moved := map[locator]bool{}
	var given []*delivery
	for _, d := range calls {
		if _, known := moved[d.locator]; !all && !known {
			moved[d.locator] = d.locator.elsewhere(within, d.endpoint)
		}
		if all || moved[d.locator] {
			given = append(given, d)
		}
	}
	return p.takeOut(given)
}

// takeOut ends the peer's part in calls. Those that cannot have arrived go back
// to their actors; the others are returned.
func (p *peer) takeOut(calls []*delivery) (mayHaveRun []*delivery) {
	p.mu.Lock()
	mayHaveRun, notRun := p.queue.takeOut(calls)
	p.mu.Unlock()
	for _, d := range notRun {
		d.owner.requeue()
	}
	return mayHaveRun
}

// adopt makes a connection the peer's.
func (p *peer) adopt(conn *connection, a *dialAttempt) {
	conn.user = p
	p.mu.Lock()
	blamed, mayHaveRun, notRun := p.queue.connected(conn)
	p.mu.Unlock()
	close(a.done)
	p.tasks.Run(conn.keep)
	if !p.tasks.Run(conn.read) {
		conn.end(errClientClosed())
		p.lost(conn, false)
	}
	if blamed != nil {
		blamed.owner.fail(neverWhole())
		blamed.owner.settled()
	}
	for _, d := range notRun {
		d.owner.requeue()
	}
	for _, d := range mayHaveRun {
		d.owner.lost(maybeExecuted())
	}
	_ = conn.wire.Flush() // a failure is the reader's, too
}

func (p *peer) lost(conn *connection, stopped bool) {
	p.mu.Lock()
	if p.queue.conn != conn {
		p.mu.Unlock()
		return
	}
	back, unanswered, mayHaveRun := p.queue.disconnected(stopped)
	if len(unanswered) > 0 && p.queue.dialing == nil {
		p.startDialing(conn.silent.Load())
	}
	closed := len(unanswered) > 0 && p.queue.dialing == nil
	p.mu.Unlock()
	for _, d := range back {
		d.owner.requeue()
	}
	if closed {
		mayHaveRun = p.takeOut(unanswered)
	}
	for _, d := range mayHaveRun {
		d.owner.lost(maybeExecuted())
	}
}

func (p *peer) replied(conn *connection, seq uint64) recipient {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.conn != conn {
		return recipient{former: true}
	}
	made := seq > 0 && seq <= p.queue.window.last()
	d := p.queue.window.take(seq)
	if d != nil {
		p.queue.cut(d)
	}
	p.queue.refill()
	return recipient{made: made, call: d}
}

func (p *peer) streams(conn *connection, seq uint64) recipient {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.conn != conn {
		return recipient{former: true}
	}
	return recipient{made: seq > 0 && seq <= p.queue.window.last(), call: p.queue.window.at(seq)}
}

func (p *peer) taken(d *delivery, items uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.conn != nil && p.queue.window.has(d) { // else it is said when the call is sent again
		p.queue.conn.post(&wire.Frame{Kind: &wire.Frame_StreamAck{StreamAck: &wire.StreamAck{Seq: d.seq, Taken: items}}})
	}
}

func (p *peer) leaves(conn *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.conn == conn {
		p.queue.leaving = true
	}
}

func (p *peer) usage() (calls uint64, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.used, p.queue.window.open > 0
}

func (p *peer) acked() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.window.acked
}

func (p *peer) submit(d *delivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.submit(d)
}

func (p *peer) withdraw(d *delivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.withdraw(d)
}

// hold holds the unanswered calls that an actor's endpoint has: those which it
// rejects come back in any order. One that runs there for long is overtaken, once a
// server that does not answer would have been found out.
func (p *peer) hold(actor locator, e resolver.Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.config.Keepalive
	if held := p.queue.hold(actor, e); len(held) > 0 {
		time.AfterFunc(2*k.Every+k.Patience, func() {
			for _, d := range held {
				d.owner.settled()
			}
		})
	}
}

// connection is nil while there is none.
func (p *peer) connection() *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.conn
}

// flush writes what was submitted.
func (p *peer) flush() {
	if conn := p.connection(); conn != nil {
		_ = conn.wire.Flush()
	}
}

// throttle waits while more calls wait here than are on the way.
func (p *peer) throttle(done <-chan struct{}) {
	for {
		p.mu.Lock()
		drained := p.queue.await()
		p.mu.Unlock()
		if drained == nil {
			return
		}
		select {
		case <-drained:
		case <-done:
			return
		}
	}
}

func (p *peer) process() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.process
}

// unanswered is the call of a number that this client made by a name; nil: it has none, or the answer.
func (p *peer) unanswered(caller string, seq uint64) *delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.conn == nil || p.queue.conn.caller != caller {
		return nil
	}
	return p.queue.window.at(seq)
}

func (p *peer) methods(ctx context.Context, name string) (*wire.ListMethodsResponse, error) {
	conn := p.connection()
	if conn == nil {
		return nil, unavailable(p.address, errNotConnected)
	}
	return conn.methods(ctx, name)
}

func (p *peer) actors(ctx context.Context, prefix string) ([]*wire.Actor, error) {
	conn := p.connection()
	if conn == nil {
		return nil, unavailable(p.address, errNotConnected)
	}
	return conn.actors(ctx, prefix)
}

// retire has the peer forgotten, unless it has a connection or calls. forget is called under
// the lock: nothing finds a peer that is retired.
func (p *peer) retire(forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.idle() {
		p.queue.retired = true
		forget()
	}
}
