package hostlink

import (
	"context"
	"errors"
	"time"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/state"
)

// sendAll sends what hosts report until the stream ends, until the controller has left
// something unacknowledged for too long, or until there is a better one.
func (c *Client) sendAll(p *path, served *upstream, better <-chan *path) error {
	watch := time.NewTicker(watchInterval)
	defer watch.Stop()
	var kept []*clusterapi.HostMessage // may wait
	var due <-chan time.Time           // when they are sent
	for {
		var fresh []*clusterapi.HostMessage
		select {
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		case c.next = <-better:
			return errBetter
		case <-watch.C:
			if c.unacknowledged() {
				return errUnacknowledged
			}
			continue
		case m := <-served.waiting:
			fresh = append(fresh, m)
		case <-due:
			due = nil
		case <-c.wake:
			if fresh = c.take(); len(fresh) == 0 {
				continue
			}
		}
		kept = append(kept, fresh...)
		if len(fresh) > 0 && len(kept) < maxTogether && served.mayWait(fresh) {
			if due == nil {
				due = time.After(together)
			}
			continue
		}
		messages := served.gather(kept)
		kept, due = nil, nil
		// An error is that the stream has ended; receive learns how.
		if err := p.stream.Send(&clusterapi.HostMessages{Messages: messages}); err != nil {
			<-p.ctx.Done()
			return context.Cause(p.ctx)
		}
	}
}

// unacknowledged reports whether a host waits for its acknowledgement for too long.
func (c *Client) unacknowledged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hosts {
		patience := hungPatience
		if h.received == 0 {
			patience = c.patience
		}
		if !h.awaiting.IsZero() && !h.rejected && time.Since(h.awaiting) > patience {
			return true
		}
	}
	return false
}

// take returns the messages of all hosts that have something to send.
func (c *Client) take() []*clusterapi.HostMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	messages := make([]*clusterapi.HostMessage, 0, len(c.dirty)+len(c.gone))
	for _, number := range c.gone {
		messages = append(messages, &clusterapi.HostMessage{Number: number, Gone: true})
	}
	c.gone = nil
	for number, h := range c.dirty {
		delete(c.dirty, number)
		if m := h.next(); m != nil {
			messages = append(messages, m)
		}
	}
	return messages
}

// next is what a host sends now, nil: nothing.
func (h *Host) next() *clusterapi.HostMessage {
	if h.rejected || h.report == nil {
		return nil
	}
	m, sent := &clusterapi.HostMessage{Number: h.number}, h.sent
	if h.sent == nil {
		m.Hello = &clusterapi.HostHello{Slice: h.cfg.Slice, Host: uint32(h.cfg.Host), Boot: h.report.Boot, Assignment: int64(h.cfg.Assignment())}
		m.Report, sent = Whole(h.report), h.report
	} else if m.Report = Delta(h.sent, h.report); !IsHeartbeat(m.Report) {
		sent = h.report
	}
	m, err := h.address(m)
	if err != nil {
		h.client.cfg.Log.Debug("nothing is said to the controller", "slice", h.cfg.Slice, "host", h.cfg.Host, "error", err)
		return nil // until it reports again
	}
	h.sent, h.seq, h.sentAt = sent, h.report.Seq, time.Now()
	if h.awaiting.IsZero() {
		h.awaiting = h.sentAt
	}
	return m
}

// address makes a message one that the controller takes as the host's.
func (h *Host) address(m *clusterapi.HostMessage) (*clusterapi.HostMessage, error) {
	if h.client.leader != nil {
		return h.seal(m)
	}
	if m.Hello == nil || h.cfg.Token == nil {
		return m, nil
	}
	var err error
	m.Hello.Token, err = h.cfg.Token()
	return m, err
}

// receive takes in what the controller sends, and returns how the stream ended.
func (c *Client) receive(p *path) error {
	for {
		batch, err := p.stream.Recv()
		if err != nil {
			return err
		}
		if p.route == nil {
			c.accept(batch)
			continue
		}
		for _, m := range batch.GetMessages() {
			if inner := c.unseal(m); inner != nil {
				c.accept(inner)
			}
		}
		if c.left() {
			return errLeft
		}
	}
}

// accept takes in a message of the controller.
func (c *Client) accept(batch *clusterapi.ControllerMessages) {
	if a := batch.GetAuthorities(); a != nil && c.cfg.Authorities != nil {
		c.cfg.Authorities(state.Generation(a.GetObject()), a.GetData())
	}
	for _, m := range batch.GetMessages() {
		if assigned := c.heard(m); assigned != nil {
			assigned(state.Generation(m.GetAssignment().GetObject()), m.GetAssignment().GetData())
		}
	}
}

var errRejected = errors.New("the controller does not serve this host")

// heard takes in a message but for its assignment, which is for what it returns.
func (c *Client) heard(m *clusterapi.ControllerMessage) func(state.Generation, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = true
	if c.up != nil {
		c.up.answered()
	}
	if w := m.GetWelcome(); w != nil {
		if d := time.Duration(w.GetHeartbeat()) * time.Millisecond; d > 0 {
			c.heartbeat = min(d, longestHeartbeat)
		}
		c.spread = min(time.Duration(w.GetSpread())*time.Millisecond, longestSpread)
		c.stored = min(time.Duration(w.GetStoreHeartbeat())*time.Millisecond, longestStored)
	}
	h := c.hosts[m.GetNumber()]
	switch {
	case h == nil && c.up != nil:
		c.up.deliver(m)
		return nil
	case h == nil:
		return nil
	}
	if m.GetRejected() != "" {
		h.rejected, h.acked = true, time.Time{}
		c.noteNews()
		c.cfg.Log.Warn("reports go to the store", "slice", h.cfg.Slice, "host", h.cfg.Host, "error", errRejected, "why", m.GetRejected())
		return nil
	}
	if n := m.GetReceived(); n != 0 && h.seq != 0 {
		h.acknowledged(n)
	}
	if m.GetWhole() && h.report != nil {
		h.sent = nil
		c.dirty[h.number] = h
		c.signal()
	}
	if m.GetAssignment() == nil {
		return nil
	}
	return h.cfg.Assigned
}

// acknowledged takes in the number of the newest report that the controller has.
func (h *Host) acknowledged(seq uint64) {
	switch {
	case seq >= h.seq:
		h.acked, h.awaiting = h.sentAt, time.Time{}
	case seq > h.received && !h.awaiting.IsZero(): // one of those that were sent since
		h.acked, h.awaiting = h.awaiting, time.Now()
	}
	h.received, h.known = max(h.received, seq), max(h.known, seq)
	if h.news != 0 && h.news <= h.known {
		h.news = 0
		h.client.noteNews()
	}
}

// What a controller may ask for at most: hosts go on by the store's way within ten seconds.
const (
	longestHeartbeat = 6 * time.Second
	longestSpread    = 8 * time.Second
	// longestStored is well below the time in which a silent host counts as lost.
	longestStored = 15 * time.Second
)
