package rehearse

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// Scenario is how the cloud behaves, by its name, and what jobs do in it.
type Scenario struct {
	Name      string
	Cloud     cloud.Scenario
	JobEvents []JobEvent
	Workloads []Workload // [DefaultWorkload] for jobs that are not named
	Source    *hcl.File  // where it comes from a file
}

// Built-in scenarios.
const (
	ScenarioCalm   = "calm"   // nothing goes wrong
	ScenarioUsual  = "usual"  // spot capacity as it mostly is
	ScenarioStormy = "stormy" // and as it is in bad weeks
)

// Scenarios are the names of those that are built in.
func Scenarios() []string { return []string{ScenarioCalm, ScenarioUsual, ScenarioStormy} }

// BuiltIn is the scenario of that name; false if there is none.
func BuiltIn(name string) (Scenario, bool) {
	s := Scenario{Name: name, Cloud: cloud.Scenario{Conditions: comingUp()}}
	w := &s.Cloud.Conditions
	switch name {
	case ScenarioCalm:
	case ScenarioUsual:
		w.Preemption, w.Notice = 18*time.Hour, cloud.Of(0.8)
		w.Maintenance = 30 * 24 * time.Hour
		w.CreatePreempted, w.LateFailures = cloud.Of(0.01), cloud.Of(0.01)
		w.DeadHosts, w.BadHosts = cloud.Of(0.001), cloud.Of(0.001)
		w.OtherEndStates, w.StuckDeletions = cloud.Of(0.1), cloud.Of(0.01)
		s.Cloud.API = cloud.API{FailureRate: 0.001}
		s.Cloud.Stockouts = nights()
	case ScenarioStormy:
		w.Preemption, w.Notice = 3*time.Hour, cloud.Of(0.4)
		w.Maintenance = 10 * 24 * time.Hour
		w.CreatePreempted, w.LateFailures = cloud.Of(0.1), cloud.Of(0.05)
		w.DeadHosts, w.BadHosts = cloud.Of(0.01), cloud.Of(0.005)
		w.OtherEndStates, w.StaleStates, w.StuckDeletions = cloud.Of(0.3), cloud.Of(0.1), cloud.Of(0.1)
		s.Cloud.API = cloud.API{FailureRate: 0.01, LostReplies: 0.002, UnreachableRate: 0.01, ListFaultRate: 0.002}
		s.Cloud.Stockouts = storms()
	default:
		return Scenario{}, false
	}
	return s, true
}

// comingUp are the times that slices take to come up and to go.
func comingUp() cloud.Conditions {
	span := func(low, high time.Duration) cloud.Range { return cloud.Range{Min: low, Max: high} }
	return cloud.Conditions{
		Provisioning: span(time.Minute, 4*time.Minute), Boot: span(time.Minute, 2*time.Minute), BootSpread: span(0, time.Minute),
		OperationLag: span(0, 5*time.Minute), Deletion: span(time.Minute, 3*time.Minute), StockoutAfter: span(10*time.Second, 3*time.Minute),
	}
}

// horizon is for how long scenarios have faults; a longer rehearsal ends without them.
const horizon = 366 * 24 * time.Hour

// nights are hours of every day in which zones have no spare capacity of any type,
// other ones in each.
func nights() []cloud.Window {
	var windows []cloud.Window
	for i, zone := range cloud.BuiltInZones() {
		for at := time.Duration(i%12) * 2 * time.Hour; at < horizon; at += 24 * time.Hour {
			windows = append(windows, cloud.Window{Zone: zone, From: at, To: at + 90*time.Minute})
		}
	}
	return windows
}

// storms are long times without capacity, at whose beginning what is there is
// taken, too, now and then.
func storms() []cloud.Window {
	var windows []cloud.Window
	for i, zone := range cloud.BuiltInZones() {
		n := 0
		for at := time.Duration(1+i*7%20) * time.Hour; at < horizon; at += 20 * time.Hour {
			n++
			windows = append(windows, cloud.Window{Zone: zone, From: at, To: at + 6*time.Hour, Preempt: n%3 == 0})
		}
	}
	return windows
}
