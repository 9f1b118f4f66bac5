package gcp_test

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// computeWorld is an emulator on a virtual clock with a provider of it.
type computeWorld struct {
	t        *testing.T
	emulator *emulator.Emulator
	clock    *cloud.Virtual
	provider *gcp.Provider
}

func newComputeWorld(t *testing.T, scenario cloud.Scenario) *computeWorld {
	t.Helper()
	w := &computeWorld{t: t, clock: cloud.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
	w.emulator = emulated(t, emulator.Config{Cloud: cloud.Config{Scenario: scenario, Clock: w.clock}})
	w.restart()
	return w
}

// restart is another process.
func (w *computeWorld) restart() {
	w.t.Helper()
	w.provider = opened(w.t, gcp.Config{Project: "p", Endpoint: w.emulator.URL(), Now: w.clock.Now, Backoff: time.Millisecond})
}

// status is how a slice is listed once some time has passed, zero if it is not.
func (w *computeWorld) status(name string, after time.Duration) schema.SliceStatus {
	w.t.Helper()
	w.clock.Advance(after)
	inventory, err := w.provider.Inventory(w.t.Context(), "stack-a")
	if err != nil {
		w.t.Fatalf("inventory: %v", err)
	}
	for _, each := range inventory.Slices {
		if each.Spec.Name == name {
			return each
		}
	}
	return schema.SliceStatus{}
}

// awaits lists until a slice is in a phase, "" for gone.
func (w *computeWorld) awaits(name string, phase schema.SlicePhase, cause schema.ErrorKind) {
	w.t.Helper()
	var status schema.SliceStatus
	for range 20 {
		if status = w.status(name, 11*time.Second); status.Phase == phase && status.Cause == cause {
			return
		}
	}
	w.t.Fatalf("%s is %q, cause %q (%s); want %q, %q", name, status.Phase, status.Cause, status.Reason, phase, cause)
}

func (w *computeWorld) create(spec schema.SliceSpec) {
	w.t.Helper()
	if err := w.provider.Create(w.t.Context(), spec); err != nil {
		w.t.Fatalf("create: %v", err)
	}
}

// discards deletes a slice and sees that nothing is left.
func (w *computeWorld) discards(name string) {
	w.t.Helper()
	if err := w.provider.Delete(w.t.Context(), schema.SliceSpec{Stack: "stack-a", Name: name}); err != nil {
		w.t.Fatalf("delete: %v", err)
	}
	w.awaits(name, "", "")
	if left := leftOf(w.t, w.emulator.URL(), name); len(left) > 0 {
		w.t.Errorf("it left %v", left)
	}
}

func (w *computeWorld) updates(spec schema.SliceSpec) {
	w.t.Helper()
	for range 20 {
		if w.status(spec.Name, 11*time.Second).Spec == spec {
			return
		}
		if err := w.provider.Update(w.t.Context(), spec); err != nil {
			w.t.Fatalf("update: %v", err)
		}
	}
	w.t.Fatal("it is not recorded as updated")
}

func (w *computeWorld) does(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func computeSpec(hosts int, tpu string) schema.SliceSpec {
	spec := schema.SliceSpec{
		Name: "it", Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"}, Provider: schema.ProviderGCP,
		TPU: tpu, Zone: computeZone, Hosts: hosts, Preemptible: true, Cloud: schema.CloudSpec{Engine: schema.EngineGCE},
	}
	if tpu == "" {
		spec.CPU, spec.Memory = 2, 8<<30
	}
	return spec
}

func (w *computeWorld) key(kind cloud.Kind) cloud.Key {
	return cloud.Key{Project: "p", Zone: computeZone, Kind: kind, Name: "it"}
}

func TestComputeMachineThroughBadConditions(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	spec := computeSpec(1, "")
	w.does(w.emulator.Cloud().Stockout(computeZone, "e2", time.Hour))
	w.create(spec)
	w.awaits("it", "", "")
	if err := w.provider.Create(t.Context(), spec); providers.KindOf(err) != schema.ErrorCapacity {
		t.Errorf("after a stockout: %v", err)
	}
	w.clock.Advance(2 * time.Hour)
	w.create(spec)
	w.awaits("it", schema.SliceReady, "")
	spec.Cloud.Live = schema.CloudLive{Labels: "team=rl", Tags: "web", InternalIPs: true}
	w.updates(spec)
	w.does(w.emulator.Cloud().Preempt(w.key(cloud.KindInstance), true))
	w.awaits("it", schema.SliceDead, schema.ErrorPreempted)
	w.restart()
	w.awaits("it", schema.SliceDead, schema.ErrorPreempted)
	w.discards("it")
}

// inOneProcessAndInMany runs a test for a provider that lives all the while, and for
// one that is another process after each next.
func inOneProcessAndInMany(t *testing.T, test func(w *computeWorld, next func())) {
	t.Run("by one process", func(t *testing.T) { test(newComputeWorld(t, cloud.Scenario{}), func() {}) })
	t.Run("by the next process each time", func(t *testing.T) {
		w := newComputeWorld(t, cloud.Scenario{})
		test(w, w.restart)
	})
}

func TestComputeGroupThroughBadConditions(t *testing.T) {
	inOneProcessAndInMany(t, func(w *computeWorld, next func()) {
		spec := computeSpec(2, "v5p-16")
		w.does(w.emulator.Cloud().Stockout(computeZone, "v5p", time.Hour))
		w.create(spec)
		next()
		w.awaits("it", schema.SliceDead, schema.ErrorCapacity)
		next()
		w.discards("it")
		w.clock.Advance(2 * time.Hour)
		w.create(spec)
		next()
		w.awaits("it", schema.SliceReady, "")
		next()
		spec.Cloud.Live = schema.CloudLive{Labels: "team=rl", Tags: "web", InternalIPs: true}
		w.updates(spec)
		w.clock.Advance(settleTime)
		next()
		w.does(w.emulator.Cloud().Preempt(w.key(cloud.KindGroup), true))
		w.clock.Advance(time.Minute)
		w.awaits("it", schema.SliceDead, schema.ErrorPreempted)
		next()
		w.discards("it")
	})
}

// settleTime is longer than a new group may look idle.
const settleTime = 10 * time.Minute

func TestComputeFlexStartGroupWaitsAndEnds(t *testing.T) {
	inOneProcessAndInMany(t, func(w *computeWorld, next func()) {
		spec := computeSpec(2, "v5p-16")
		spec.Preemptible, spec.Cloud.Provisioning, spec.Cloud.MaxRun = false, schema.ProvisioningFlexStart, schema.Duration(time.Hour)
		w.does(w.emulator.Cloud().Stockout(computeZone, "v5p", time.Hour))
		w.create(spec)
		next()
		for range 3 {
			next()
			if status := w.status("it", 10*time.Minute); status.Phase != schema.SliceCreating || len(status.Down) > 0 {
				t.Fatalf("while it waits it is %q, cause %q, with %d hosts down: %s", status.Phase, status.Cause, len(status.Down), status.Reason)
			}
		}
		w.clock.Advance(time.Hour)
		w.awaits("it", schema.SliceReady, "")
		next()
		w.clock.Advance(2 * time.Hour)
		w.awaits("it", schema.SliceDead, schema.ErrorPreempted)
		w.discards("it")
	})
}

func TestComputeZoneInAnOutageIsUnlisted(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.create(computeSpec(2, "v5p-16"))
	w.awaits("it", schema.SliceReady, "")
	w.does(w.emulator.Cloud().Outage(computeZone, time.Hour))
	inventory, err := w.provider.Inventory(t.Context(), "stack-a")
	if err != nil || len(inventory.Slices) > 0 || inventory.Unlisted[computeZone] == "" {
		t.Errorf("in an outage: %+v, %v", inventory, err)
	}
	w.clock.Advance(2 * time.Hour)
	w.awaits("it", schema.SliceReady, "")
	w.discards("it")
}

func TestComputeThroughFailingCallsAndLostReplies(t *testing.T) {
	for name, spec := range map[string]schema.SliceSpec{"one machine": computeSpec(1, ""), "group": computeSpec(2, "v5p-16")} {
		for seed := range uint64(5) {
			w := newComputeWorld(t, cloud.Scenario{Seed: seed, API: cloud.API{FailureRate: 0.2, LostReplies: 0.15}})
			up, gone := false, false
			for range 200 {
				w.clock.Advance(5 * time.Second)
				inventory, err := w.provider.Inventory(t.Context(), "stack-a")
				if err != nil {
					continue
				}
				switch listed := len(inventory.Slices) > 0; {
				case listed && inventory.Slices[0].Phase == schema.SliceDead:
					t.Fatalf("%s, seed %d: a slice that was not preempted is dead: %s", name, seed, inventory.Slices[0].Reason)
				case listed && !up:
					if up = inventory.Slices[0].Phase == schema.SliceReady; len(inventory.Slices[0].Down) > 0 {
						_ = w.provider.Create(t.Context(), spec)
					}
				case listed:
					_ = w.provider.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "it"})
				case up:
					gone = true
				default:
					_ = w.provider.Create(t.Context(), spec)
				}
				if gone {
					break
				}
			}
			w.emulator.Cloud().Abate()
			w.emulator.Cloud().SetAPI(cloud.API{})
			if left := leftOf(t, w.emulator.URL(), "it"); !up || !gone || len(left) > 0 {
				t.Errorf("%s, seed %d: came up %t, gone %t, left %v", name, seed, up, gone, left)
			}
		}
	}
}
