package hostlink

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/state"
)

// A host that is rejected in clear, which its relay may do, begins a new channel after a while.
func TestRejectedInClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, err := sealed.NewLeaderKey()
		if err != nil {
			t.Fatal(err)
		}
		c := NewClient(Config{Log: slog.New(slog.DiscardHandler)})
		h := c.Host(HostConfig{Slice: "a", Host: 1, Assignment: func() state.Generation { return 0 }, Relayed: func(key string) (string, error) { return key, nil }})
		c.begin(&path{route: &Route{}, leader: key.Public()})
		say := func(seq uint64) (offer string) {
			t.Helper()
			h.Report(state.HostReport{Slice: "a", Seq: seq})
			for _, m := range c.take() {
				if m.GetReport() != nil || m.GetHello().GetBoot() != "" {
					t.Errorf("it says %v for the relay to read", m)
				}
				offer = string(m.GetHello().GetOffer())
			}
			return offer
		}
		first := say(1)
		if first == "" || say(2) != "" {
			t.Error("it does not begin one channel")
		}
		c.unseal(&clusterapi.ControllerMessage{Number: 1, Rejected: "not now"})
		if !c.left() || say(3) != "" || c.unacknowledged() {
			t.Error("rejected, it goes on")
		}
		time.Sleep(rejectedHold)
		if again := say(4); again == "" || again == first || c.left() {
			t.Error("it does not begin another channel")
		}
	})
}
