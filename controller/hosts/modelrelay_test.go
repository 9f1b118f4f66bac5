package hosts

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state"
)

// seal seals a message, as the client does.
func (s *modelStream) seal(t *rapid.T, h *modelHost, m *clusterapi.HostMessage) *clusterapi.HostMessage {
	out := &clusterapi.HostMessage{Number: m.GetNumber()}
	if s.channels[h.number] == nil {
		channel, offer, err := sealed.Dial(s.leader, "a", h.number)
		if err != nil {
			t.Fatal(err)
		}
		s.channels[h.number] = channel
		out.Hello = &clusterapi.HostHello{Slice: "a", Host: uint32(h.number), Token: fmt.Sprintf("a/%d %s", h.number, offer.Name()), Offer: offer}
	}
	plain, err := proto.Marshal(m)
	if err == nil {
		out.Sealed, err = s.channels[h.number].Seal(plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// forge is what a relay that lies says of a host behind it: a report, with or without an
// introduction, or what the host has said with a byte that is another.
func (s *modelStream) forge(t *rapid.T, h *modelHost) *clusterapi.HostMessage {
	out := &clusterapi.HostMessage{Number: uint32(h.number)}
	switch rapid.IntRange(0, 2).Draw(t, "lie") {
	case 0:
		for _, m := range s.kept {
			if m.GetNumber() == out.GetNumber() {
				out.Sealed = bytes.Clone(m.GetSealed())
			}
		}
		if len(out.GetSealed()) > 0 {
			out.Sealed[rapid.IntRange(0, len(out.GetSealed())-1).Draw(t, "byte")] ^= 1
		}
		return out
	case 1:
		out.Hello = &clusterapi.HostHello{Slice: "a", Host: out.GetNumber(), Boot: "lie"}
	}
	out.Report = hostlink.Whole(&state.HostReport{Seq: 1 << 40, Task: &state.TaskReport{Attempt: 1000}})
	return out
}

// relayedToken is what the token of a relayed host asserts.
func relayedToken(_ context.Context, text string) (token.Claims, error) {
	claims := token.Claims{Subject: token.SubjectRelayed, Signer: token.ID{Slice: "a"}, Expires: time.Now().Add(time.Minute)}
	if _, err := fmt.Sscanf(text, "a/%d %s", &claims.Signer.Host, &claims.Key); err != nil {
		return claims, token.ErrMalformed
	}
	return claims, nil
}

// unseal is what the controller sends to a host behind the relay; nil: nothing of it counts.
func (s *modelStream) unseal(t *rapid.T, h *modelHost, m *clusterapi.ControllerMessage) *clusterapi.ControllerMessage {
	if m.GetReceived() != 0 || m.GetWhole() || m.GetWelcome() != nil || m.GetAssignment() != nil {
		t.Fatalf("host %d is sent %v for its relay to read", h.number, m)
	}
	if len(m.GetSealed()) == 0 {
		return nil
	}
	plain, err := s.channels[h.number].Open(m.GetSealed())
	inner := &clusterapi.ControllerMessages{}
	if err == nil {
		err = proto.Unmarshal(plain, inner)
	}
	if err != nil {
		t.Fatalf("host %d cannot read what it was sent: %v", h.number, err)
	}
	return inner.GetMessages()[0]
}

// replay has a relay say again, by a new stream, all that it has passed on by another.
func (c *modelController) replay(t *rapid.T, s *modelStream) {
	again := c.connect(s.of...)
	for _, m := range s.kept {
		if len(m.GetSealed()) > 0 { // its own it may repeat
			c.arrive(t, again, m)
		}
	}
	if len(again.session.hosts) > 0 {
		t.Fatalf("a relay speaks for hosts by what they said in another stream: %v", again.session.hosts)
	}
	again.open = false
	c.table.closed(again.session)
}
