package gcp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// tpuWorld is an emulated cloud with faults, on a clock that the test moves.
type tpuWorld struct {
	t        *testing.T
	clock    *cloud.Virtual
	cloud    *cloud.Cloud
	provider *gcp.Provider
}

func newTPUWorld(t *testing.T, scenario cloud.Scenario) *tpuWorld {
	t.Helper()
	w := &tpuWorld{t: t, clock: cloud.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
	e := emulated(t, emulator.Config{Cloud: cloud.Config{Scenario: scenario, Clock: w.clock}})
	w.cloud = e.Cloud()
	w.provider = opened(t, gcp.Config{Project: "p", Endpoint: e.URL(), Now: w.clock.Now, Backoff: time.Millisecond})
	return w
}

func conditionsSpec(name string, change ...func(*schema.SliceSpec)) schema.SliceSpec {
	spec := schema.SliceSpec{
		Name: name, Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"}, Provider: schema.ProviderGCP,
		TPU: "v4-16", Zone: tpuZone, Preemptible: true, Hosts: 2, Cloud: schema.CloudSpec{Engine: schema.EngineTPU},
	}
	for _, each := range change {
		each(&spec)
	}
	return spec
}

func queuedFor(wait time.Duration) func(*schema.SliceSpec) {
	return func(s *schema.SliceSpec) {
		s.Cloud.Provisioning, s.Cloud.ValidUntil = schema.ProvisioningQueued, schema.Duration(wait)
	}
}

func reserved(s *schema.SliceSpec) {
	s.Preemptible, s.Cloud.Provisioning = false, schema.ProvisioningReserved
}

func (w *tpuWorld) list() []schema.SliceStatus {
	w.t.Helper()
	inventory, err := w.provider.Inventory(w.t.Context(), "stack-a")
	if err != nil {
		w.t.Fatal(err)
	}
	return inventory.Slices
}

// until moves the clock until the slice one is in a phase, "" for gone.
func (w *tpuWorld) until(phase schema.SlicePhase) schema.SliceStatus {
	w.t.Helper()
	var is schema.SliceStatus
	for range 100 {
		is = schema.SliceStatus{}
		for _, each := range w.list() {
			is = each
		}
		if is.Phase == phase {
			return is
		}
		w.clock.Advance(10 * time.Second)
	}
	w.t.Fatalf("the slice is %q for %q, want %q", is.Phase, is.Reason, phase)
	return is
}

// gone deletes the slice and waits until nothing of it is left.
func (w *tpuWorld) gone() {
	w.t.Helper()
	if err := w.provider.Delete(w.t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}); err != nil {
		w.t.Fatal(err)
	}
	w.until("")
	if groups, requests := w.cloud.All(), w.cloud.AllRequests(); len(groups)+len(requests) != 0 {
		w.t.Errorf("there are still %v and %v", groups, requests)
	}
}

// The next Creates report the faults of a creation, at once or late; without faults the
// slice comes up.
func TestTPUConditionsOfCreation(t *testing.T) {
	for name, test := range map[string]struct {
		scenario cloud.Scenario
		change   func(*schema.SliceSpec)
		want     schema.ErrorKind
	}{
		"stockout": {cloud.Scenario{Stockouts: []cloud.Window{{Zone: tpuZone}}}, nil, schema.ErrorCapacity},
		"small zone": {
			cloud.Scenario{Zones: []cloud.Zone{{Name: tpuZone, Capacity: map[string]int{"v4": 0}}}}, nil, schema.ErrorCapacity,
		},
		"quota of zero": {cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-central2", Type: "v4"}}}, nil, schema.ErrorQuota},
		"reservation":   {cloud.Scenario{}, reserved, schema.ErrorReservation},
		"API disabled": {
			cloud.Scenario{API: cloud.API{Disabled: []string{"tpu.googleapis.com"}}}, nil, schema.ErrorPermission,
		},
		"no permission":   {cloud.Scenario{API: cloud.API{Deny: []string{"tpu.nodes.create"}}}, nil, schema.ErrorPermission},
		"unauthenticated": {cloud.Scenario{API: cloud.API{Unauthenticated: true}}, nil, schema.ErrorPermission},
		"unknown zone":    {cloud.Scenario{}, func(s *schema.SliceSpec) { s.Zone = "us-nowhere1-a" }, schema.ErrorInvalid},
		"not offered":     {cloud.Scenario{}, func(s *schema.SliceSpec) { s.Zone = "us-west4-a" }, schema.ErrorInvalid},
		"no such network": {cloud.Scenario{Networks: []string{"default"}}, func(s *schema.SliceSpec) { s.Cloud.Network = "none" }, schema.ErrorInvalid},
		"failed within": {
			cloud.Scenario{Conditions: cloud.Conditions{LateFailures: cloud.Of(1)}}, nil, schema.ErrorUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTPUWorld(t, test.scenario)
			spec := conditionsSpec("one")
			if test.change != nil {
				test.change(&spec)
			}
			var err error
			for range 20 {
				if err = w.provider.Create(t.Context(), spec); err != nil {
					break
				}
				w.clock.Advance(time.Second)
			}
			if got := providers.KindOf(err); err == nil || got != test.want {
				t.Errorf("the error is %v of kind %s, want %s", err, got, test.want)
			}
			t.Log(err)
		})
	}
}

func TestTPUConditionsCreateLimit(t *testing.T) {
	w := newTPUWorld(t, cloud.Scenario{CreateLimit: 1})
	if err := w.provider.Create(t.Context(), conditionsSpec("one")); err != nil {
		t.Fatal(err)
	}
	if got := providers.KindOf(w.provider.Create(t.Context(), conditionsSpec("two"))); got != schema.ErrorRate {
		t.Errorf("the second is refused as %s", got)
	}
	w.clock.Advance(time.Minute + time.Second)
	if err := w.provider.Create(t.Context(), conditionsSpec("two")); err != nil {
		t.Error(err)
	}
}

// What ends in whatever way is dead, deleted, gone, and can be made again.
func TestTPUConditionsOfLife(t *testing.T) {
	preempt := func(w *tpuWorld) {
		w.until(schema.SliceReady)
		if err := w.cloud.Preempt(cloud.Key{Project: "p", Zone: tpuZone, Kind: cloud.KindNode, Name: "one"}, false); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		conditions cloud.Conditions
		change     func(*schema.SliceSpec)
		happens    func(*tpuWorld)
		cause      schema.ErrorKind
	}{
		"preempted":                    {happens: preempt, cause: schema.ErrorPreempted},
		"preempted into another state": {conditions: cloud.Conditions{OtherEndStates: cloud.Of(1)}, happens: preempt, cause: schema.ErrorPreempted},
		"preempted and shown as ready": {conditions: cloud.Conditions{StaleStates: cloud.Of(1)}, happens: preempt, cause: schema.ErrorPreempted},
		"preempted during create": {
			conditions: cloud.Conditions{CreatePreempted: cloud.Of(1)}, happens: func(*tpuWorld) {}, cause: schema.ErrorPreempted,
		},
		"preempted in a queued resource": {change: queuedFor(0), happens: preempt, cause: schema.ErrorPreempted},
		"preempted in a queued resource, and its node lingers": {
			conditions: cloud.Conditions{QueueConditions: cloud.QueueConditions{Lingering: cloud.Of(1)}}, change: queuedFor(0), happens: preempt, cause: schema.ErrorPreempted,
		},
		"waited in vain": {
			change: queuedFor(time.Minute), happens: func(*tpuWorld) {}, cause: schema.ErrorCapacity,
		},
		"its deletion hangs": {
			conditions: cloud.Conditions{StuckDeletions: cloud.Of(1), StuckFor: cloud.Range{Min: 5 * time.Minute, Max: 10 * time.Minute}},
			happens:    preempt, cause: schema.ErrorPreempted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario := cloud.Scenario{Conditions: test.conditions}
			if test.cause == schema.ErrorCapacity {
				scenario.Stockouts = []cloud.Window{{Zone: tpuZone}}
			}
			w := newTPUWorld(t, scenario)
			spec := conditionsSpec("one")
			if test.change != nil {
				test.change(&spec)
			}
			for range 2 {
				if err := w.provider.Create(t.Context(), spec); err != nil {
					t.Fatal(err)
				}
				test.happens(w)
				is := w.until(schema.SliceDead)
				if is.Cause != test.cause || is.Reason == "" || is.Spec != spec {
					t.Errorf("it is dead of %q for %q, want %q; its spec is %+v", is.Cause, is.Reason, test.cause, is.Spec)
				}
				w.gone()
			}
		})
	}
}

func TestTPUConditionsOutage(t *testing.T) {
	w := newTPUWorld(t, cloud.Scenario{})
	if err := w.provider.Create(t.Context(), conditionsSpec("one")); err != nil {
		t.Fatal(err)
	}
	w.until(schema.SliceReady)
	if err := w.cloud.Outage(tpuZone, 0); err != nil {
		t.Fatal(err)
	}
	inventory, err := w.provider.Inventory(t.Context(), "stack-a")
	if err != nil {
		t.Fatal(err)
	}
	if inventory.Unlisted[tpuZone] == "" || len(inventory.Slices) != 0 {
		t.Errorf("the inventory is %+v", inventory)
	}
	w.cloud.Calm()
	w.until(schema.SliceReady)
}

// Where replies are lost, calls fail and lists are partial, 30 slices are each
// made once, and none is left in the end.
func TestTPUConditionsOfTheAPI(t *testing.T) {
	w := newTPUWorld(t, cloud.Scenario{Seed: 1, API: cloud.API{FailureRate: 0.2, LostReplies: 0.3, UnreachableRate: 0.2}})
	const slices = 30
	for round := 0; ; round++ {
		if round == 200 {
			t.Fatal("they are not all there")
		}
		inventory, err := w.provider.Inventory(t.Context(), "stack-a")
		if err == nil && len(inventory.Unlisted) == 0 && len(inventory.Slices) == slices {
			break
		}
		for i := range slices {
			if err := w.provider.Create(t.Context(), conditionsSpec(fmt.Sprintf("s-%02d", i))); err != nil {
				if kind := providers.KindOf(err); kind != schema.ErrorUnavailable && kind != schema.ErrorRate {
					t.Fatalf("create: %v (%s)", err, kind)
				}
			}
		}
		w.clock.Advance(5 * time.Second)
	}
	if got := len(w.cloud.All()); got != slices {
		t.Errorf("there are %d nodes, want %d", got, slices)
	}
	for round := 0; len(w.cloud.All()) > 0; round++ {
		if round == 200 {
			t.Fatal("they are not all gone")
		}
		for i := range slices {
			err := w.provider.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: fmt.Sprintf("s-%02d", i)})
			if kind := providers.KindOf(err); err != nil && kind != schema.ErrorUnavailable {
				t.Fatalf("delete: %v (%s)", err, kind)
			}
		}
		w.clock.Advance(5 * time.Second)
	}
}
