package hostlink

import (
	"context"
	"errors"
	"time"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/state"
)

// sendAll sends what hosts report until ctx ends, or until the controller has left
// something unacknowledged for too long.
func (c *Client) sendAll(ctx context.Context, stream clusterapi.Hosts_ConnectClient) error {
	watch, heartbeats := time.NewTicker(watchInterval), time.NewTicker(gatherInterval)
	defer watch.Stop()
	defer heartbeats.Stop()
	for {
		var messages []*clusterapi.HostMessage
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-watch.C:
			if c.unacknowledged() {
				return errUnacknowledged
			}
		case <-heartbeats.C:
			messages = c.take(true)
		case <-c.wake:
			messages = c.take(false)
		}
		if len(messages) == 0 {
			continue
		}
		// An error is that the stream has ended; receive learns how.
		if err := stream.Send(&clusterapi.HostMessages{Messages: messages}); err != nil {
			<-ctx.Done()
			return context.Cause(ctx)
		}
	}
}

// gatherInterval is how often heartbeats are sent, those of all hosts of a stream together: a
// message costs both ends more than what is in it. With the longest heartbeat, and the time
// that an acknowledgement takes, it leaves a host live.
const gatherInterval = 1500 * time.Millisecond

// unacknowledged reports whether a host waits for its acknowledgement for too long.
func (c *Client) unacknowledged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hosts {
		if !h.awaiting.IsZero() && !h.rejected && time.Since(h.awaiting) > ackPatience {
			return true
		}
	}
	return false
}

// take returns the messages of all hosts that have something to send; none if that are only
// heartbeats which are not sent yet.
func (c *Client) take(heartbeats bool) []*clusterapi.HostMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !heartbeats && !c.urgent {
		return nil
	}
	c.urgent = false
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
	m := &clusterapi.HostMessage{Number: h.number}
	if h.sent == nil {
		hello := &clusterapi.HostHello{Slice: h.cfg.Slice, Host: uint32(h.cfg.Host), Boot: h.report.Boot, Assignment: int64(h.cfg.Assignment())}
		if h.cfg.Token != nil {
			var err error
			if hello.Token, err = h.cfg.Token(); err != nil {
				h.client.cfg.Log.Debug("no token for the stream to the controller", "slice", h.cfg.Slice, "host", h.cfg.Host, "error", err)
				return nil // until it reports again
			}
		}
		m.Hello, m.Report = hello, Whole(h.report)
		h.sent = h.report
	} else {
		m.Report = Delta(h.sent, h.report)
		if !IsHeartbeat(m.Report) {
			h.sent = h.report
		}
	}
	h.seq, h.sentAt = h.report.Seq, time.Now()
	if h.awaiting.IsZero() {
		h.awaiting = h.sentAt
	}
	return m
}

// receive takes in what the controller sends, and returns how the stream ended.
func (c *Client) receive(stream clusterapi.Hosts_ConnectClient) error {
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		if a := batch.GetAuthorities(); a != nil && c.cfg.Authorities != nil {
			c.cfg.Authorities(state.Generation(a.GetObject()), a.GetData())
		}
		for _, m := range batch.GetMessages() {
			if assigned := c.heard(m); assigned != nil {
				assigned(state.Generation(m.GetAssignment().GetObject()), m.GetAssignment().GetData())
			}
		}
	}
}

var errRejected = errors.New("the controller does not serve this host")

// heard takes in a message but for its assignment, which is for what it returns.
func (c *Client) heard(m *clusterapi.ControllerMessage) func(state.Generation, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = true
	if w := m.GetWelcome(); w != nil {
		if d := time.Duration(w.GetHeartbeat()) * time.Millisecond; d > 0 {
			c.heartbeat = min(d, longestHeartbeat)
		}
		c.spread = min(time.Duration(w.GetSpread())*time.Millisecond, longestSpread)
	}
	h := c.hosts[m.GetNumber()]
	if h == nil {
		return nil
	}
	if m.GetRejected() != "" {
		h.rejected, h.acked = true, time.Time{}
		c.cfg.Log.Warn("reports go to the store", "slice", h.cfg.Slice, "host", h.cfg.Host, "error", errRejected, "why", m.GetRejected())
		return nil
	}
	if n := m.GetReceived(); n != 0 && h.seq != 0 {
		h.acknowledged(n)
	}
	if m.GetWhole() && h.report != nil {
		h.sent, c.urgent = nil, true
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
	h.received = max(h.received, seq)
}

// What a controller may ask for at most: hosts go on by the store's way within ten seconds.
const (
	longestHeartbeat = 6 * time.Second
	longestSpread    = 8 * time.Second
)
