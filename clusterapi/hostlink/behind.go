package hostlink

import (
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/sealed"
)

// What hosts say through a relay, and what they are sent so, is sealed. The client's mutex is
// held by callers of these methods unless they say otherwise.

var (
	errNotRelayed = errors.New("this host speaks through no relay")
	errLeft       = errors.New("no host of this process is served through the relay")
)

// seal makes a message readable to the controller alone. The first one of a stream begins the
// host's channel.
func (h *Host) seal(m *clusterapi.HostMessage) (*clusterapi.HostMessage, error) {
	out := &clusterapi.HostMessage{Number: h.number, Patient: IsHeartbeat(m.GetReport())}
	channel := h.channel
	if channel == nil {
		if h.cfg.Relayed == nil {
			return nil, errNotRelayed
		}
		begun, offer, err := sealed.Dial(h.client.leader, h.cfg.Slice, h.cfg.Host)
		if err != nil {
			return nil, err
		}
		token, err := h.cfg.Relayed(offer.Name())
		if err != nil {
			return nil, err
		}
		out.Hello = &clusterapi.HostHello{Slice: h.cfg.Slice, Host: uint32(h.cfg.Host), Token: token, Offer: offer}
		channel = begun
	}
	plain, err := proto.Marshal(m)
	if err == nil {
		out.Sealed, err = channel.Seal(plain)
	}
	if err != nil {
		return nil, err
	}
	h.channel = channel
	return out, nil
}

// rejectedHold is how long a host that was rejected in clear says nothing: by a relay that does
// not serve it, or since its token could not be checked then.
const rejectedHold = 30 * time.Second

// retry has a host begin anew that was rejected so a while ago.
func (h *Host) retry() {
	if h.rejected && !h.rejectedAt.IsZero() && time.Since(h.rejectedAt) >= rejectedHold {
		h.rejected, h.rejectedAt, h.sent, h.channel, h.awaiting = false, time.Time{}, nil, nil, time.Time{}
	}
}

// unseal is what the controller sends to a host behind a relay; nil: nothing of it counts. The
// receiver calls it, without the mutex.
func (c *Client) unseal(m *clusterapi.ControllerMessage) *clusterapi.ControllerMessages {
	c.mu.Lock()
	h := c.hosts[m.GetNumber()]
	var channel *sealed.Channel
	if h != nil {
		channel = h.channel
		if m.GetRejected() != "" && !h.rejected { // by the relay, maybe
			h.rejected, h.rejectedAt = true, time.Now()
			c.noteNews()
			c.cfg.Log.Debug("not served through the relay", "slice", h.cfg.Slice, "host", h.cfg.Host, "why", m.GetRejected())
		}
	}
	c.mu.Unlock()
	if channel == nil || len(m.GetSealed()) == 0 {
		return nil
	}
	plain, err := channel.Open(m.GetSealed())
	inner := &clusterapi.ControllerMessages{}
	if err != nil || proto.Unmarshal(plain, inner) != nil {
		return nil
	}
	for _, each := range inner.GetMessages() {
		each.Number = m.GetNumber()
	}
	return inner
}

// left reports whether no host of the client is served. The receiver calls it, without the
// mutex.
func (c *Client) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hosts {
		if h.report != nil && !h.rejected {
			return false
		}
	}
	return true
}
