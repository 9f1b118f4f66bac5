package rehearse

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// However many hosts there are, an observer sees those that live as alive and the
// others fall silent.
func TestHeartbeats(t *testing.T) {
	for name, hosts := range map[string]int{"few": 2, "many": fewHosts + 50} {
		t.Run(name, func(t *testing.T) {
			now := began()
			m := newMemory(func() time.Time { return now })
			for n := range hosts {
				m.report(state.HostReport{Slice: "a", Host: n, Address: "10.0.0.1"})
			}
			o := apply.Observer{Store: m, Now: func() time.Time { return now }}
			longest, last := time.Duration(0), time.Duration(0)
			for look := range 40 {
				if look == 10 {
					m.silence("a", 1)
				}
				obs, err := o.Observe(t.Context(), "stack")
				if err != nil {
					t.Fatal(err)
				}
				longest = max(longest, obs.Hosts["a"][0].SilentFor(obs.Monitored))
				last = obs.Hosts["a"][1].SilentFor(obs.Monitored)
				now = now.Add(time.Minute)
			}
			if longest >= snapshot.HostTimeout || last < snapshot.HostTimeout {
				t.Errorf("a living host was silent for %s and a dead one for %s, want less and more than %s", longest, last, snapshot.HostTimeout)
			}
		})
	}
}

// An agent that lives reports again after its report was removed, a dead one does not.
func TestRemovedReports(t *testing.T) {
	m := newMemory(began)
	m.report(state.HostReport{Slice: "a", Host: 0})
	m.report(state.HostReport{Slice: "a", Host: 1})
	m.silence("a", 1)
	before, err := m.Get(t.Context(), store.HostKey("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := m.Delete(t.Context(), store.HostKey("a", n)); err != nil {
			t.Fatal(err)
		}
	}
	left, err := m.List(t.Context(), store.HostsPrefix)
	if err != nil || len(left) != 1 || left[0].Key != before.Key || left[0].Generation <= before.Generation {
		t.Errorf("got %v, %v, want the living one, later than %d", left, err, before.Generation)
	}
}
