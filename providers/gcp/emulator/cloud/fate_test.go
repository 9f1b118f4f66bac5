package cloud_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

func TestMachinesLife(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	g := w.made(spot("a"))
	id := g.Hosts[2].ID
	if err := w.cloud.Maintain(g.Key, 2); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Hour)
	if err := w.cloud.Preempt(g.Key, true); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Hour)
	if _, err := w.cloud.Delete(g.Key); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Hour)
	w.gone(g.Key)
	w.saw("start "+id, "notice "+id+" maintenance", "stop "+id, "start "+id, "notice "+id+" preemption", "stop "+id, "remove "+id)
	w.audit()
	if again := w.made(spot("a")); slices.ContainsFunc(again.Hosts, func(h cloud.Host) bool { return h.ID == id }) {
		t.Errorf("a machine of the group made again is %s again", id)
	}
}

// TestNoticeComesBeforeTheEnd has the notice exactly 30 s before, and none for
// preemptions without notice.
func TestNoticeComesBeforeTheEnd(t *testing.T) {
	for _, notice := range []bool{true, false} {
		w := newWorld(t, cloud.Scenario{})
		g := w.made(spot("a"))
		w.fleet.trace = nil
		if err := w.cloud.Preempt(g.Key, notice); err != nil {
			t.Fatal(err)
		}
		if err := w.cloud.Preempt(g.Key, notice); notice && err != nil { // announced already
			t.Fatal(err)
		}
		w.clock.Advance(cloud.NoticeTime)
		w.want(g.Key, cloud.StatePreempted)
		id := g.Hosts[0].ID
		want := []string{"1m0s stop " + id}
		if notice {
			want = []string{"1m0s notice " + id + " preemption", "1m30s stop " + id}
		}
		got := slices.DeleteFunc(slices.Clone(w.fleet.trace), func(line string) bool { return !strings.Contains(line, id) })
		if !slices.Equal(got, want) {
			t.Errorf("with notice %v the machine saw %q, want %q", notice, got, want)
		}
	}
}

func TestMeanTimeToPreemption(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{Preemption: 6 * time.Hour}})
	lived := time.Duration(0)
	const groups = 400
	spec := spot("")
	spec.VanishAtEnd = true
	spec.Changed = func(g *cloud.Group) {
		if g.State == cloud.StatePreempted {
			lived += g.Ended.Sub(g.Ready)
		}
	}
	for i := range groups {
		spec.Name = "n" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		w.allocate(spec)
	}
	w.clock.Advance(30 * 24 * time.Hour)
	if err := w.cloud.Empty(); err != nil {
		t.Fatal(err)
	}
	if mean := lived / groups; mean < 5*time.Hour || mean > 7*time.Hour {
		t.Errorf("400 groups lived for %v on average, want about 6 h", mean)
	}
}

func TestOnDemandIsNotPreempted(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{Preemption: time.Minute}})
	spec := spot("a")
	spec.Tier = cloud.TierOnDemand
	w.made(spec)
	w.clock.Advance(30 * 24 * time.Hour)
	w.want(spec.Key, cloud.StateReady)
}

func TestMaxRunAndVanish(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	spec := spot("a")
	spec.MaxRun, spec.VanishAtEnd = time.Hour, true
	var states []cloud.State
	spec.Changed = func(g *cloud.Group) {
		if n := len(states); n == 0 || states[n-1] != g.State {
			states = append(states, g.State)
		}
	}
	w.made(spec)
	w.clock.Advance(2 * time.Hour)
	w.gone(spec.Key)
	want := []cloud.State{cloud.StateCreating, cloud.StateReady, cloud.StateTerminated, cloud.StateGone}
	if !slices.Equal(states, want) {
		t.Errorf("it was %v, want %v", states, want)
	}
	w.audit()
	if err := w.cloud.Empty(); err != nil {
		t.Error(err)
	}
}

func TestRestart(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{OperationLag: cloud.Range{Min: time.Second, Max: time.Second}}})
	g := w.made(spot("a"))
	w.fleet.trace = nil
	op, err := w.cloud.Restart(g.Key)
	if err != nil {
		t.Fatal(err)
	}
	w.want(g.Key, cloud.StateRestarting)
	w.clock.Advance(time.Minute)
	w.want(g.Key, cloud.StateReady)
	w.ended(op, "")
	w.saw("stop "+g.Hosts[0].ID, "start "+g.Hosts[0].ID)
}

func TestKilledHostShowsNowhere(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	g := w.made(spot("a"))
	if err := w.cloud.KillHost(g.Key, 3); err != nil {
		t.Fatal(err)
	}
	after := w.want(g.Key, cloud.StateReady)
	if after.Shown != cloud.StateReady || after.Hosts[3].On || !after.Hosts[2].On {
		t.Errorf("after the kill it shows %s with hosts %v, want READY with the last one off", after.Shown, after.Hosts)
	}
	if g.Hosts[3].On == after.Hosts[3].On {
		t.Error("a group that was handed out has changed")
	}
}

// TestScript runs a scenario's file against groups that are there.
func TestScript(t *testing.T) {
	scenario, diags := cloud.ParseScenario([]byte(`
at "1h" {
  preempt = "a"
  silent  = true
}
at "1h10m" {
  kill_host = "b/1"
}
at "1h20m" {
  maintain = "b"
}
at "2h" {
  stockout = "us-west4-a"
  for      = "10m"
}
stockout {
  zone    = "us-west4-a"
  type    = "v5litepod"
  from    = "3h"
  preempt = true
}
at "4h" {
  preempt = "unknown"
}
`), "s.hcl")
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	w := newWorld(t, scenario)
	a, b := w.made(spot("a")), w.made(spot("b"))
	w.clock.AdvanceTo(start().Add(time.Hour))
	w.want(a.Key, cloud.StatePreempted)
	w.clock.AdvanceTo(start().Add(70 * time.Minute))
	if g := w.want(b.Key, cloud.StateReady); g.Hosts[1].On {
		t.Error("the host that was to be killed is on")
	}
	w.clock.AdvanceTo(start().Add(81 * time.Minute))
	w.want(b.Key, cloud.StateRepairing)
	w.clock.AdvanceTo(start().Add(2*time.Hour + time.Minute))
	short := w.allocate(spot("c"))
	w.clock.Advance(10 * time.Minute)
	w.ended(short, cloud.ReasonStockout)
	w.made(spot("c"))
	w.clock.AdvanceTo(start().Add(3*time.Hour + time.Minute))
	w.want(b.Key, cloud.StatePreempted)
	w.want(node("c"), cloud.StatePreempted)
	w.clock.AdvanceTo(start().Add(5 * time.Hour))
	w.audit()
}

// TestLuckIsTheGroupsOwn has a group's fate not depend on what others do.
func TestLuckIsTheGroupsOwn(t *testing.T) {
	end := func(others ...string) time.Time {
		w := newWorld(t, cloud.Scenario{Seed: 3, Conditions: cloud.Conditions{Preemption: time.Hour}})
		for _, name := range append(others, "a") {
			w.allocate(spot(name))
		}
		w.clock.Advance(48 * time.Hour)
		return w.want(node("a"), cloud.StatePreempted).Ended
	}
	if alone, amongOthers := end(), end("b", "c"); alone != amongOthers {
		t.Errorf("alone it ended at %v, among others at %v", alone, amongOthers)
	}
}

func TestTypeConditions(t *testing.T) {
	w := newWorld(t, cloud.Scenario{
		Conditions: cloud.Conditions{LateFailures: cloud.Of(1)},
		Zones: []cloud.Zone{{Name: zone, Types: []cloud.TypeConditions{
			{Name: "v5litepod", Conditions: cloud.Conditions{LateFailures: cloud.Of(0), Provisioning: cloud.Range{Min: time.Hour, Max: time.Hour}}},
		}}},
	})
	op := w.allocate(spot("a"))
	machine := w.allocate(cloud.Spec{Key: cloud.Key{Project: project, Zone: zone, Kind: cloud.KindInstance, Name: "m"}, Type: "n2", Units: 8, Machines: 1})
	w.clock.Advance(time.Minute)
	w.ended(machine, cloud.ReasonInternal) // as around it
	w.want(node("a"), cloud.StateCreating)
	w.clock.Advance(time.Hour)
	w.ended(op, "")
}

// TestAbate ends all faults, those to come included.
func TestAbate(t *testing.T) {
	scenario := badConditions(1)
	scenario.API = cloud.API{FailureRate: 1, Deny: []string{"p"}}
	w := newWorld(t, scenario)
	for i := range 3 {
		_, _ = w.cloud.Allocate(spot("bad" + string(rune('a'+i))))
	}
	w.clock.Advance(30 * time.Minute)
	if err := w.cloud.Stockout(zone, "", 0); err != nil {
		t.Fatal(err)
	}
	w.cloud.Abate()
	for _, g := range w.cloud.All() {
		if _, err := w.cloud.Delete(g.Key); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Advance(3 * time.Hour) // for deletions that were stuck already
	w.allocate(spot("a"))
	w.allocate(spot("b"))
	w.clock.Advance(10 * time.Minute)
	w.want(node("a"), cloud.StateReady)
	w.clock.Advance(30 * 24 * time.Hour)
	w.want(node("a"), cloud.StateReady)
	w.want(node("b"), cloud.StateReady)
	if lost, err := w.cloud.Admit(t.Context(), cloud.Call{Project: project}); lost || err != nil {
		t.Errorf("a call gets %v, %v", lost, err)
	}
	if _, err := w.cloud.Admit(t.Context(), cloud.Call{Project: project, Permission: "p"}); err == nil {
		t.Error("a permission that was missing is there")
	}
}

// TestAbateWithdrawsUnannouncedPreemptions has preemptions that were drawn and not yet
// announced not happen.
func TestAbateWithdrawsUnannouncedPreemptions(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{Preemption: time.Hour, Maintenance: time.Hour}})
	w.allocate(spot("a"))
	w.clock.Advance(6 * time.Second)
	w.want(node("a"), cloud.StateReady)
	w.cloud.Abate()
	w.clock.Advance(30 * 24 * time.Hour)
	w.want(node("a"), cloud.StateReady)
}

func TestSetAPI(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.cloud.SetAPI(cloud.API{FailureRate: 1})
	if _, err := w.cloud.Admit(t.Context(), cloud.Call{Project: project}); err == nil {
		t.Error("a call works although all fail")
	}
	w.cloud.SetAPI(cloud.API{})
	if _, err := w.cloud.Admit(t.Context(), cloud.Call{Project: project}); err != nil {
		t.Error(err)
	}
}

// TestStoppedDuringMaintenance can have another one after it was started again.
func TestStoppedDuringMaintenance(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	g := w.made(spot("a"))
	if err := w.cloud.Maintain(g.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := w.cloud.Stop(g.Key); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Hour)
	w.want(g.Key, cloud.StateStopped)
	if _, err := w.cloud.Start(g.Key); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	if err := w.cloud.Maintain(g.Key); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	w.want(g.Key, cloud.StateRepairing)
	w.audit()
}

// TestLatency has calls wait on the real clock, end with their caller, and not
// wait on a virtual one.
func TestLatency(t *testing.T) {
	slow := cloud.Scenario{API: cloud.API{Latency: cloud.Range{Min: time.Hour, Max: time.Hour}}}
	w := newWorld(t, slow)
	if _, err := w.cloud.Admit(t.Context(), cloud.Call{Project: project}); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := cloud.New(cloud.Config{Scenario: slow})
		began := time.Now()
		if _, err := c.Admit(t.Context(), cloud.Call{Project: project}); err != nil || time.Since(began) != time.Hour {
			t.Errorf("a call of an hour took %v: %v", time.Since(began), err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Admit(impatient, cloud.Call{Project: project}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that was given up ends with %v", err)
		}
	})
}

func TestReservedCapacityKnowsNoStockout(t *testing.T) {
	w := newWorld(t, cloud.Scenario{
		Zones:     []cloud.Zone{{Name: zone, Reserved: map[string]int{"v5litepod": 16}}},
		Stockouts: []cloud.Window{{Zone: zone}},
	})
	reserved := spot("a")
	reserved.Tier = cloud.TierReserved
	w.made(reserved)
	op := w.allocate(spot("b"))
	w.clock.Advance(time.Minute)
	w.ended(op, cloud.ReasonStockout)
}
