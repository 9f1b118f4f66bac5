package hosts

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/clusterapi/token"
)

// relayed is a host that speaks through the stream of another, which passes on what it
// cannot read.
type relayed struct {
	key
	channel *sealed.Channel
	opened  bool // a message of it was; the receiver's alone
}

// NewKey makes the key to which hosts behind relays seal their messages in the next term, and
// returns its public half, for the lease.
func (h *Hub) NewKey() ([]byte, error) {
	made, err := sealed.NewLeaderKey()
	if err != nil {
		return nil, err
	}
	h.key.Store(made)
	return made.Public(), nil
}

// accept begins the channel that a hello offers. It returns why it does not, or "". That the
// key of its token cannot be looked up now ends no stream, which is others' too: the host tries
// again.
func (s *session) accept(ctx context.Context, number uint32, hello *clusterapi.HostHello) (why string, err error) {
	offer := sealed.Offer(hello.GetOffer())
	at := key{hello.GetSlice(), int(hello.GetHost())}
	claims, err := s.verify(ctx, hello.GetToken())
	switch {
	case err != nil:
		return err.Error(), nil
	case claims.Subject != token.SubjectRelayed || claims.Key != offer.Name() || at != (key{claims.Signer.Slice, claims.Signer.Host}):
		return othersToken, nil
	case s.table.key == nil:
		return "this controller has published no key for relays", nil
	case !s.table.offered(offer, claims.Expires):
		return "", nil // it comes again: what it began goes on
	}
	channel, err := s.table.key.Accept(offer, at.slice, at.host)
	if err != nil {
		return err.Error(), nil
	}
	if !s.table.relay(s, number, &relayed{key: at, channel: channel}) {
		return tooMany, nil
	}
	return "", nil
}

// unseal takes in a message of a host behind a relay. What is not the host's has no effect.
func (s *session) unseal(m *clusterapi.HostMessage) {
	r := s.table.relayed(s, m.GetNumber())
	if r == nil {
		return
	}
	plain, err := r.channel.Open(m.GetSealed())
	inner := &clusterapi.HostMessage{}
	if err != nil && !r.opened {
		s.table.leave(s, m.GetNumber())
		s.table.reject(s, m.GetNumber(), "its first message was not sealed for this term")
		return
	}
	r.opened = true
	if err != nil || proto.Unmarshal(plain, inner) != nil {
		s.hub.log.Debug("a relay's message left out", "slice", r.slice, "host", r.host, "through", s.who.Slice)
		return
	}
	if hello := inner.GetHello(); hello != nil {
		switch {
		case r.key != key{hello.GetSlice(), int(hello.GetHost())}:
			return
		case !s.table.hello(s, m.GetNumber(), hello):
			s.table.reject(s, m.GetNumber(), tooMany)
			return
		}
	}
	if report := inner.GetReport(); report != nil {
		s.table.report(s, m.GetNumber(), report)
	}
}

// seal makes what goes to a host behind a relay unreadable to that.
func (r *relayed) seal(m *clusterapi.ControllerMessage, authorities *clusterapi.HostAuthorities) *clusterapi.ControllerMessage {
	out := &clusterapi.ControllerMessage{Number: m.GetNumber()}
	plain, err := proto.Marshal(&clusterapi.ControllerMessages{Messages: []*clusterapi.ControllerMessage{m}, Authorities: authorities})
	if err == nil {
		out.Sealed, err = r.channel.Seal(plain)
	}
	if err != nil {
		out.Rejected = err.Error()
	}
	return out
}

// mostOffers is how many offers are remembered at most.
const mostOffers = 1 << 18

// offered takes note of an offer until its token expires, and reports whether it is new: a
// relay that keeps what a host said does not begin the same again.
func (t *Table) offered(offer sealed.Offer, expires time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.offers[string(offer)]; known {
		return false
	}
	if now := time.Now(); now.After(t.offersPruned) || len(t.offers) >= mostOffers {
		t.offersPruned = now.Add(offersPace)
		for o, until := range t.offers {
			if now.After(until) {
				delete(t.offers, o)
			}
		}
	}
	if len(t.offers) >= mostOffers {
		return false
	}
	t.offers[string(offer)] = expires.Add(offersPace)
	return true
}

// offersPace is the time between two removals of expired offers.
const offersPace = time.Minute

// relay has a host speak through a stream by its channel, and reports whether it may.
func (t *Table) relay(s *session, number uint32, r *relayed) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.relayed[number] == nil && len(s.relayed) >= maxHosts {
		return false
	}
	t.leaveLocked(s, number)
	if s.relayed == nil {
		s.relayed = map[uint32]*relayed{}
	}
	s.relayed[number] = r
	return true
}

// relayed is the host behind a relay that has a number, nil: none has.
func (t *Table) relayed(s *session, number uint32) *relayed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.relayed[number]
}

func (t *Table) streams() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sessions)
}

// gather has what is to be sent by a stream wait for more of it, until it does not any more.
func (t *Table) gather(s *session, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.gathering = more; !more && len(s.out) > 0 {
		s.signal()
	}
}
