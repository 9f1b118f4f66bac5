package cloud_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// badConditions have every fault happen.
func badConditions(seed uint64) cloud.Scenario {
	often := cloud.Of(0.2)
	return cloud.Scenario{
		Seed: seed,
		Conditions: cloud.Conditions{
			Preemption: time.Hour, Maintenance: 2 * time.Hour, Notice: cloud.Of(0.5), OtherEndStates: often, StaleStates: often,
			LateFailures: often, CreatePreempted: often, DeadHosts: often, StuckDeletions: often, QueueConditions: cloud.QueueConditions{Lingering: cloud.Of(0.5)},
			BootSpread:       cloud.Range{Max: 10 * time.Second},
			OperationLag:     cloud.Range{Max: 5 * time.Minute},
			UnknownHealthFor: cloud.Range{Max: time.Minute},
		},
		Zones:     []cloud.Zone{{Name: zone, Capacity: map[string]int{"v5litepod": 64}, Reserved: map[string]int{"v5litepod": 16}}},
		Quotas:    []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Limit: 112}, {Region: "us-west4", Type: "v5litepod", Tier: cloud.TierSpot, Limit: 96}},
		Stockouts: []cloud.Window{{Zone: zone, From: time.Hour, To: 2 * time.Hour, Preempt: true}},
	}
}

// act does one action of a client or of the cloud.
func act(w *world, choice, which, tier int) {
	name := fmt.Sprintf("n%d", which)
	spec := spot(name)
	spec.Tier = []cloud.Tier{cloud.TierSpot, cloud.TierOnDemand, cloud.TierReserved}[tier]
	if tier == 1 {
		spec.MaxRun, spec.VanishAtEnd = 3*time.Hour, which%2 == 0
	}
	var err error
	switch choice {
	case 0, 1:
		_, err = w.cloud.Allocate(spec)
	case 2:
		_, err = w.cloud.Delete(node(name))
	case 3:
		second := spec
		second.Name += "b"
		_, err = w.cloud.Enqueue(cloud.RequestSpec{
			Key: queued(name), Groups: []cloud.Spec{spec, second}, ValidUntil: w.clock.Now().Add(time.Hour),
		})
	case 4:
		_, err = w.cloud.DeleteRequest(queued(name), tier > 0)
	case 5:
		_, err = w.cloud.ResetRequest(queued(name))
	case 6:
		err = w.cloud.Preempt(node(name), tier > 0)
	case 7:
		_, err = w.cloud.Stop(node(name))
	case 8:
		_, err = w.cloud.Start(node(name))
	case 9:
		_, err = w.cloud.Restart(node(name))
	case 10:
		err = w.cloud.Maintain(node(name))
	case 11:
		err = w.cloud.KillHost(node(name), tier)
	case 12:
		if ops := w.cloud.Operations(project, zone); len(ops) > 0 {
			err = w.cloud.CancelOperation(ops[which*len(ops)/6].Name)
		}
	default:
		w.clock.Advance(time.Duration(1+which*which*which*(1+tier)) * 10 * time.Second)
	}
	_ = err // most of it cannot be at the moment; what counts is what is left behind
}

// TestAccounts has capacity, quota and machines add up whatever the order of
// calls, and nothing left once everything was deleted.
func TestAccounts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, badConditions(rapid.Uint64().Draw(r, "seed")))
		for range rapid.IntRange(1, 80).Draw(r, "steps") {
			act(w, rapid.IntRange(0, 15).Draw(r, "choice"), rapid.IntRange(0, 5).Draw(r, "which"), rapid.IntRange(0, 2).Draw(r, "tier"))
			if err := errors.Join(w.cloud.Audit(), fleetError(w.fleet)); err != nil {
				r.Fatal(err)
			}
		}
		for _, request := range w.cloud.AllRequests() {
			if _, err := w.cloud.DeleteRequest(request.Key, true); err != nil {
				r.Fatal(err)
			}
		}
		for _, g := range w.cloud.All() {
			if _, err := w.cloud.Delete(g.Key); err != nil {
				r.Fatal(err)
			}
		}
		w.clock.Advance(24 * time.Hour)
		if err := errors.Join(w.cloud.Audit(), w.cloud.Empty(), fleetError(w.fleet)); err != nil {
			r.Fatal(err)
		}
		if len(w.fleet.known) > 0 {
			r.Fatalf("machines that were not removed: %v", w.fleet.known)
		}
	})
}

func fleetError(f *fleet) error {
	if len(f.wrong) > 0 {
		return fmt.Errorf("done to machines: %q", f.wrong)
	}
	return nil
}

// TestSameSeedSameTrace runs a day of bad conditions under the same calls.
func TestSameSeedSameTrace(t *testing.T) {
	day := func(seed uint64) []string {
		w := newWorld(t, badConditions(seed))
		for i := range 24 * 12 {
			act(w, i*7%13, i%6, i%3)
			w.clock.Advance(5 * time.Minute)
		}
		return w.fleet.trace
	}
	first, again, other := day(1), day(1), day(2)
	if len(first) < 100 {
		t.Fatalf("machines had only %d events", len(first))
	}
	if !slices.Equal(first, again) {
		t.Error("the same seed had another trace")
	}
	if slices.Equal(first, other) {
		t.Error("another seed had the same trace")
	}
}
