package rehearse

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

var (
	slicesFlag = flag.Int("sim.slices", 0, "simulate so many slices; 0: the short form")
	forFlag    = flag.Duration("sim.for", 30*24*time.Hour, "for so long")
	paceFlag   = flag.Duration("sim.pace", 5*time.Minute, "with so much time between two steps")
	seedFlag   = flag.Uint64("sim.seed", propertytest.Seed, "the seed; 0: a random one")
)

// sixZones are where the simulation's slices may be: three regions.
func sixZones() []string {
	return []string{"us-west4-a", "us-west4-b", "us-east5-a", "us-east5-b", "europe-west4-a", "europe-west4-b"}
}

// fleetOf are jobs with about n slices in all, of many shapes: single hosts,
// slices of several hosts, gangs of several slices, groups of jobs in one region.
func fleetOf(n int) schema.Desired {
	d := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "rehearsal", Zones: sixZones()}}}
	for made, i := 0, 0; made < n; i++ {
		j := schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)}, Namespace: "default",
			Command: []schema.Text{schema.Plain("work")},
			Resources: schema.Resources{
				Provider: schema.ProviderGCP, TPU: "v5litepod-8", Slices: 1, Preemptible: true, Zones: preferring(i),
			},
			Retries: schema.Retries{Preemption: schema.Unlimited},
		}
		switch r := &j.Resources; i % 10 {
		case 0:
			r.Slices = min(2+i%3, n-made)
		case 1, 2, 3:
			r.TPU = "v5litepod-16"
		case 4:
			r.TPU = "v6e-32"
		case 5:
			r.Preemptible = false
		}
		made += j.Resources.Slices
		d.Jobs = append(d.Jobs, j)
	}
	return d
}

// preferring are the six zones, beginning with another one for each job.
func preferring(i int) []string {
	zones := sixZones()
	return append(zones[i%len(zones):], zones[:i%len(zones)]...)
}

// conditionsOf is a month of all faults.
func conditionsOf(seed uint64, lasts time.Duration) cloud.Scenario {
	dice := rand.New(rand.NewPCG(seed, 1))
	minutes := func(low, high int) cloud.Range {
		return cloud.Range{Min: time.Duration(low) * time.Minute, Max: time.Duration(high) * time.Minute}
	}
	s := cloud.Scenario{
		API: cloud.API{FailureRate: 0.004, LostReplies: 0.002, UnreachableRate: 0.01, ListFaultRate: 0.02},
		Conditions: cloud.Conditions{
			Provisioning: minutes(1, 6), Boot: minutes(1, 3), BootSpread: minutes(0, 2), OperationLag: minutes(0, 10),
			Deletion: minutes(1, 4), StockoutAfter: minutes(0, 5),
			Preemption: 36 * time.Hour, Notice: cloud.Of(0.6), OtherEndStates: cloud.Of(0.2), StaleStates: cloud.Of(0.1),
			Maintenance: 20 * 24 * time.Hour, LateFailures: cloud.Of(0.02), CreatePreempted: cloud.Of(0.02),
			DeadHosts: cloud.Of(0.002), BadHosts: cloud.Of(0.002), UnknownHealthFor: minutes(0, 3),
			StuckDeletions: cloud.Of(0.02), QueueConditions: cloud.QueueConditions{Lingering: cloud.Of(0.1)},
		},
	}
	for _, zone := range sixZones() {
		s.Zones = append(s.Zones, cloud.Zone{Name: zone, Capacity: map[string]int{"v5litepod": 1 << 20, "v6e": 1 << 20}})
		for at := time.Duration(0); at < lasts; {
			at += time.Duration(dice.Int64N(int64(48 * time.Hour)))
			ends := at + time.Duration(dice.Int64N(int64(8*time.Hour)))
			s.Stockouts = append(s.Stockouts, cloud.Window{Zone: zone, From: at, To: ends, Preempt: dice.IntN(8) == 0})
			at = ends
		}
		at := time.Duration(dice.Int64N(int64(lasts)))
		s.Outages = append(s.Outages, cloud.Window{Zone: zone, From: at, To: at + 3*time.Hour})
	}
	return s
}

// settlers put nodes into the cloud that are none of the stack's business: some of
// another stack, some without any mark.
func settlers(t *testing.T, r *rehearsal) {
	t.Helper()
	for i, zone := range sixZones() {
		spec := cloud.Spec{
			Key:  cloud.Key{Project: r.project(), Zone: zone, Kind: cloud.KindNode, Name: fmt.Sprintf("work-%d-0-theirs", i)},
			Type: "v5litepod", Units: 8, Machines: 1, AcceleratorType: "v5litepod-8", RuntimeVersion: "v2-alpha-tpuv5-lite", Tier: cloud.TierOnDemand,
			Detail:  &tpuapi.Node{AcceleratorType: "v5litepod-8", RuntimeVersion: "v2-alpha-tpuv5-lite"},
			Changed: r.oracle.touched,
		}
		if i%2 == 0 {
			spec.Labels = map[string]string{labelStack: "otherstack12", labelSlice: spec.Name}
			spec.Metadata = map[string]string{metadataSpec: fmt.Sprintf(`{"name":%q,"stack":"otherstack12","hosts":1}`, spec.Name)}
			spec.Detail = &tpuapi.Node{
				AcceleratorType: "v5litepod-8", RuntimeVersion: "v2-alpha-tpuv5-lite", Labels: spec.Labels, Metadata: spec.Metadata,
			}
		}
		if _, err := r.cloud.Allocate(spec); err != nil {
			t.Fatal(err)
		}
	}
}

// simulate runs a world to its end and fails where a rule was broken.
func simulate(t *testing.T, cfg Config) *Report {
	t.Helper()
	began := time.Now()
	r, err := open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	settlers(t, r)
	rep, err := r.run(t.Context())
	if err != nil {
		t.Fatalf("seed %d: %v", cfg.Seed, err)
	}
	took := time.Since(began)
	t.Logf("seed %d: %d jobs, %d slices created, goodput %.3f, %d steps in %s (%.1f a second; %s in steps, the longest %s)",
		cfg.Seed, len(rep.Jobs), rep.Slices, rep.Goodput, rep.Steps, took.Round(time.Millisecond), float64(rep.Steps)/took.Seconds(),
		r.spent.Round(time.Millisecond), r.longest.Round(time.Millisecond))
	for _, l := range rep.Lost {
		t.Logf("  %-12s %-16s %8.1f h", l.Cause, l.Zone, l.Hours)
	}
	for _, v := range rep.Violations {
		t.Errorf("seed %d: %s", cfg.Seed, v)
	}
	return rep
}

// TestSimulation is a month, or without flags three days, or with -short half a
// day, of a fleet whose cloud has all faults.
func TestSimulation(t *testing.T) {
	seed := seedOf()
	if n := *slicesFlag; n > 0 {
		simulate(t, Config{Desired: fleetOf(n), Scenario: conditionsOf(seed, *forFlag), For: *forFlag, Seed: seed, Pace: *paceFlag, Restarts: 24 * time.Hour})
		return
	}
	lasts := 3 * 24 * time.Hour
	if testing.Short() { // looks for races only; make soak does that at full length
		lasts = 12 * time.Hour
	}
	simulate(t, Config{Desired: fleetOf(60), Scenario: conditionsOf(seed, lasts), For: lasts, Seed: seed, Pace: 5 * time.Minute, Restarts: 5 * time.Hour})
}

// seedOf is the seed of a simulation.
func seedOf() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return uint64(time.Now().UnixNano())
}
