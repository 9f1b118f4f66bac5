package actorrpc

import (
	"cmp"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// submit numbers a call and queues it for the connection.
func (s *server) submit(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || s.link.leaving {
		return false
	}
	if limit := s.link.hello.GetMaxMessageBytes(); limit > 0 && c.bytes+c.overhead() > limit {
		c.fail(tooLarge(c.bytes, limit))
		return true
	}
	if c.behindWaiter(s.process) {
		return true
	}
	s.used++
	c.reset()
	if len(s.waiting) > 0 || s.full() {
		s.waiting = append(s.waiting, c)
		return true
	}
	c.sends++
	s.window.add(c)
	s.transmit(c)
	return true
}

// full reports whether the server takes no more calls before it has answered some.
// It needs the lock.
func (s *server) full() bool {
	limit := int(min(s.link.hello.GetMaxPending(), maxPending))
	return s.window.open >= cmp.Or(limit, maxPending)
}

// transmit queues a numbered call. What goes wrong with the connection is found by
// its reader. It needs the lock.
func (s *server) transmit(c *call) {
	f := c.frame()
	f.Acked = s.window.acked
	c.arrived = c.mayHaveArrived()
	c.receipt = &wire.Receipt{}
	_ = s.link.conn.Queue(&wire.Frame{Kind: &wire.Frame_Call{Call: f}}, c.buffers, c.receipt)
}

// refill sends calls that waited for others to be answered. It needs the lock.
func (s *server) refill() {
	if len(s.waiting) == 0 || s.link == nil {
		return
	}
	sent := false
	for len(s.waiting) > 0 && !s.full() {
		c := s.waiting[0]
		s.waiting = s.waiting[1:]
		if !c.finished.Load() {
			c.sends++
			s.window.add(c)
			s.transmit(c)
			sent = true
		}
	}
	s.makeRoom()
	if sent {
		conn := s.link.conn
		go func() { _ = conn.Flush() }()
	}
}

// makeRoom wakes those who wait for room. It needs the lock.
func (s *server) makeRoom() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// withdraw asks the server not to run a call, or to end it. Its number stays taken until that is answered.
func (s *server) withdraw(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, c); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.makeRoom()
		return false
	}
	if !s.window.has(c) {
		return c.mayHaveArrived()
	}
	if s.link == nil { // it is not sent again
		s.window.take(c.seq)
		c.settled()
		return c.mayHaveArrived()
	}
	conn := s.link.conn
	_ = conn.Queue(&wire.Frame{Kind: &wire.Frame_Cancel{Cancel: &wire.Cancel{Seq: c.seq}}}, nil, nil)
	go func() { _ = conn.Flush() }()
	return true // what waits to be written will be
}

// hold holds the unanswered calls that an actor's endpoint has: those which it
// refuses come back in any order. One that runs there for long is overtaken, once a
// server that does not answer would have been found out.
func (s *server) hold(a *actor, e Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []*call
	for _, c := range s.window.calls {
		if c != nil && c.actor == a && c.endpoint.same(e) && !c.finished.Load() {
			c.hold()
			held = append(held, c)
		}
	}
	k := s.client.config.Keepalive
	if len(held) > 0 {
		time.AfterFunc(2*k.Every+k.Patience, func() {
			for _, c := range held {
				c.settled()
			}
		})
	}
}

// usage is how many calls were submitted, and whether some have no answer yet.
func (s *server) usage() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.window.open > 0
}

func (s *server) acked() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window.acked
}

// flush writes what was submitted.
func (s *server) flush() {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		_ = l.conn.Flush()
	}
}

// throttle waits while more calls wait here than are on the way.
func (s *server) throttle(done <-chan struct{}) {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.mu.Unlock()
			return
		}
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-done:
			return
		}
	}
}
