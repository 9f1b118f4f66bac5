package actorrpc

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"
)

// server is one address at which frames are spoken. All handles share its one
// connection. When that breaks, the calls without an answer wait in its window
// until it is known who answers there now.
type server struct {
	client  *Client
	address string
	asked   time.Time // when somebody wanted it; under the client's lock

	// Of who connects.
	self string          // Handshake.peer: by which the server's processes know our calls' numbers
	met  map[string]bool // the processes that know it

	mu      sync.Mutex
	link    *link   // nil: not connected
	flight  *flight // an attempt to connect; nil: none
	process string  // that the window's numbers are of
	window  window
	waiting []*call       // beyond what the server takes at once
	room    chan struct{} // closed when waiting gets shorter; nil: nobody waits for that
	used    uint64        // calls submitted
	retired bool          // the client has forgotten it
}

// newServer has a name of its own: where one process has two addresses, calls over one
// are numbered without regard to the other.
func newServer(c *Client, address string) *server {
	return &server{client: c, address: address, self: rand.Text(), met: map[string]bool{}}
}

// flight is an attempt to connect, for all who need it.
type flight struct {
	done chan struct{}
	err  error // valid once done is closed
}

// ready connects, where that is needed.
func (s *server) ready(ctx context.Context) error {
	s.mu.Lock()
	if s.link != nil && !s.link.leaving {
		s.mu.Unlock()
		return nil
	}
	if s.retired {
		s.mu.Unlock()
		return errRetired
	}
	f := s.flight
	if f == nil {
		f = s.launch()
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// launch begins an attempt to connect. It needs the lock.
func (s *server) launch() *flight {
	f := &flight{done: make(chan struct{})}
	s.flight = f
	if s.link != nil { // the server is leaving: another may come to its address
		s.flight, f.err = nil, errLeaving(s.address)
		close(f.done)
		return f
	}
	if !s.client.run(func(ctx context.Context) { s.connect(ctx, f) }) {
		s.flight, f.err = nil, errClientClosed()
		close(f.done)
	}
	return f
}

func errLeaving(address string) *Error {
	return &Error{Code: CodeStopping, Message: "the server at " + address + " is shutting down"}
}

// connect opens a connection. While calls are without an answer it tries until it
// is known what became of them.
func (s *server) connect(ctx context.Context, f *flight) {
	limit := time.Now().Add(s.client.config.ResolveTimeout)
	for failures := 1; ; failures++ {
		l, err := s.open(ctx)
		if err == nil {
			s.adopt(l, f)
			return
		}
		s.client.log().Debug("connecting failed", "address", s.address, "error", err)
		for _, c := range s.given(ctx, err, time.Now().After(limit)) {
			c.actor.lost(c, maybeExecuted())
		}
		s.mu.Lock()
		if s.window.open == 0 {
			s.flight = nil
			f.err = err
			s.mu.Unlock()
			close(f.done)
			return
		}
		s.mu.Unlock()
		wait := time.NewTimer(backoff(failures))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// given takes out of the window the calls which, after an attempt to connect has
// failed, need not wait for the next.
func (s *server) given(ctx context.Context, err error, late bool) []*call {
	var e *Error
	// A port that refuses is no process's: the one that had it is gone.
	all := late || ctx.Err() != nil || errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &e) && final(e.Code)
	s.mu.Lock()
	calls := s.window.all()
	s.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, askTimeout) // for all: they are not to wait for each other
	defer cancel()
	moved := map[*actor]bool{}
	var given []*call
	for _, c := range calls {
		if _, known := moved[c.actor]; !all && !known {
			moved[c.actor] = c.actor.elsewhere(within, c.endpoint)
		}
		if all || moved[c.actor] {
			given = append(given, c)
		}
	}
	return s.takeOut(given)
}

// takeOut ends the server's part in calls. Those that cannot have arrived go back
// to their actors; the others are returned.
func (s *server) takeOut(calls []*call) (perhaps []*call) {
	s.mu.Lock()
	calls = slices.DeleteFunc(calls, func(c *call) bool { return !s.window.has(c) })
	for _, c := range calls {
		s.window.take(c.seq)
	}
	perhaps, never := sift(calls)
	s.mu.Unlock()
	for _, c := range never {
		c.actor.requeue(c)
	}
	return perhaps
}

// sift tells calls that may have arrived from those that cannot have. None of them
// is the server's any more. It needs the lock.
func sift(calls []*call) (perhaps, never []*call) {
	for _, c := range calls {
		arrived := c.mayHaveArrived()
		c.reset()
		if c.arrived = arrived; arrived { // whoever gives it up meanwhile is to know
			perhaps = append(perhaps, c)
		} else {
			never = append(never, c)
		}
	}
	return perhaps, never
}

// reset forgets that the call was sent.
func (c *call) reset() { c.seq, c.attempt, c.arrived, c.receipt = 0, 0, false, nil }

// adopt makes a connection the server's. If the same process answers, all calls
// without an answer are sent again under their numbers, which it knows.
func (s *server) adopt(l *link, f *flight) {
	s.mu.Lock()
	gone := s.window.all()
	same := l.hello.GetPeer() == s.process
	if same {
		gone = slices.DeleteFunc(gone, func(c *call) bool { return c.attempt < maxSends })
		for _, c := range gone {
			s.window.take(c.seq)
		}
	} else {
		s.window, s.process = window{}, l.hello.GetPeer()
	}
	perhaps, never := sift(gone)
	var blamed *call // the first may be why connections break
	if same && len(perhaps) == 0 && len(never) > 0 {
		blamed, never = never[0], never[1:]
	}
	s.link, s.flight = l, nil
	for _, c := range s.window.all() {
		c.attempt++
		s.transmit(c)
		c.settled()
	}
	s.mu.Unlock()
	close(f.done)
	s.client.run(l.keep)
	if !s.client.run(l.read) {
		l.end(errClientClosed())
		s.lost(l, false)
	}
	if blamed != nil {
		blamed.fail(neverWhole())
		blamed.settled()
	}
	for _, c := range never {
		c.actor.requeue(c)
	}
	for _, c := range perhaps {
		c.actor.lost(c, maybeExecuted())
	}
	_ = l.conn.Flush() // a failure is the reader's, too
}

// lost is told that a connection is over. The calls without an answer wait until
// it is known who answers at the address now; none did run if the server's last
// word was that it stops.
func (s *server) lost(l *link, stopped bool) {
	s.mu.Lock()
	if s.link != l {
		s.mu.Unlock()
		return
	}
	s.link = nil
	for _, c := range s.window.all() {
		if c.finished.Load() { // given up: it is not sent again
			s.window.take(c.seq)
		}
	}
	back, calls := s.waiting, s.window.all()
	s.waiting = nil
	for _, c := range slices.Concat(calls, back) {
		c.hold()
	}
	var perhaps []*call
	if stopped {
		var never []*call
		perhaps, never = s.dismissed(calls)
		back, calls = append(never, back...), nil
	}
	s.makeRoom()
	if len(calls) > 0 && s.flight == nil {
		s.launch()
	}
	closed := len(calls) > 0 && s.flight == nil
	s.mu.Unlock()
	for _, c := range back {
		c.actor.requeue(c)
	}
	if closed {
		perhaps = s.takeOut(calls)
	}
	for _, c := range perhaps {
		c.actor.lost(c, maybeExecuted())
	}
}

// dismissed takes out of the window what a server that stopped did not answer. It
// did not run over this connection, but may have over an earlier one. It needs the lock.
func (s *server) dismissed(calls []*call) (perhaps, never []*call) {
	for _, c := range calls {
		s.window.take(c.seq)
		c.receipt = nil
	}
	return sift(calls)
}
