package apply_test

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Drift that lasts is an event at its first step, and again once it comes back.
func TestRecorderNotesLastingDriftOnce(t *testing.T) {
	s := storetest.NewMemory()
	r := &apply.Recorder{Store: s, Epoch: 1, Valid: func() error { return nil }}
	var since state.Edits
	since.Begin(&state.Document{})
	down := plan.Drift{Kind: plan.DriftHostsDown, Slice: "s", Found: "host 1 of slice s is down", Then: "will be started again"}
	other := plan.Drift{Kind: plan.DriftSliceGone, Slice: "t", Found: "slice t is gone", Then: "will be created again"}
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for _, drift := range [][]plan.Drift{{down}, {down}, {down, other}, nil, {down}} {
		now = now.Add(time.Second)
		r.Note(&plan.Plan{Drift: drift, Next: since.From()}, &since, now)
	}
	if err := r.Save(t.Context(), now, true); err != nil {
		t.Fatal(err)
	}
	events, err := (&store.EventReader{Store: s}).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, e.Text)
	}
	if len(got) != 3 {
		t.Errorf("got %d events %q, want the hosts twice and the slice once", len(got), got)
	}
}
