package apply_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Silence is measured by the observer's own looking: a suspended observer does
// not find all hosts silent, one that looked on finds exactly those that are.
func TestSilenceIsWhatTheObserverSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		report := func(seq uint64) {
			data, err := json.Marshal(store.HostReport{Slice: "a", Seq: seq, At: time.Now().Add(-time.Hour)}) // its clock is behind
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), store.HostKey("a", 0), data, store.Any); err != nil {
				t.Fatal(err)
			}
		}
		o := &apply.Observer{Store: s}
		silent := func() time.Duration {
			t.Helper()
			obs, err := o.Observe(t.Context(), "stack")
			if err != nil {
				t.Fatal(err)
			}
			return obs.Hosts["a"][0].Silent
		}
		report(1)
		if got := silent(); got != 0 {
			t.Errorf("first look: silent for %s, want 0", got)
		}
		time.Sleep(time.Hour) // suspended
		if got := silent(); got > 10*time.Second {
			t.Errorf("after an hour without looking: silent for %s, want a moment", got)
		}
		for range 60 {
			time.Sleep(time.Second)
			silent()
		}
		if got := silent(); got < time.Minute {
			t.Errorf("after looking on for a minute: silent for %s, want at least that", got)
		}
		report(2)
		if got := silent(); got != 0 {
			t.Errorf("after a new report: silent for %s, want 0", got)
		}
	})
}
