package rehearse

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// told is what a rehearsal is compared by.
type told struct {
	report string
	events []string
	steps  int
}

// tell rehearses, with a step at every tick or only when one is due, and without its end.
func tell(t *testing.T, cfg Config, everyTick bool) told {
	t.Helper()
	r, err := open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.accept(t.Context(), r.cfg.Desired); err != nil {
		t.Fatal(err)
	}
	var events []string
	for end := r.start.Add(r.cfg.For); r.clock.Now().Before(end); {
		before := r.stepper.Document()
		if err := r.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range change.Events(before, r.stepper.Last(), r.clock.Now()) {
			events = append(events, fmt.Sprintf("%s %s %s %s: %s", e.At.Sub(r.start), e.Kind, e.Addr, e.Slice, e.Text))
		}
		if everyTick {
			r.clock.AdvanceTo(earlier(r.tick(r.clock.Now(), r.clock.Now()), end))
		} else {
			r.sleep(end)
		}
	}
	r.books.close(r.clock.Now())
	rep := r.report()
	rep.Violations = append(rep.Violations, r.oracle.found...)
	text, err := json.MarshalIndent(rep, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return told{string(text), events, r.steps}
}

// mixed is a job of each kind that a fleet has: on slices of one host and of several, of
// several slices, in a group, on a reservation's slices, and packed on its hosts.
func mixed() schema.Desired {
	d := training(2, "v5litepod-16", "us-west4-a", "us-central1-a")
	add := func(name string, change func(*schema.Job)) {
		j := d.Jobs[0]
		j.Addr = schema.Address{Kind: schema.KindJob, Name: name}
		change(&j)
		d.Jobs = append(d.Jobs, j)
	}
	add("small", func(j *schema.Job) { j.Resources.TPU = "v5litepod-4" })
	add("multi", func(j *schema.Job) { j.Resources.Slices = 2 })
	add("queued", func(j *schema.Job) { j.Resources.Cloud.Provisioning = schema.ProvisioningQueued })
	add("machine", func(j *schema.Job) {
		j.Resources.TPU, j.Resources.CPU, j.Resources.Memory, j.Resources.Preemptible = "", 4, 16<<30, false
	})
	d.Jobs[0].Retries.Preemption = 3
	return withPacked(d, 3)
}

// withPacked adds a reservation and packed jobs on its hosts.
func withPacked(d schema.Desired, n int) schema.Desired {
	pool := schema.Reservation{
		Addr: schema.Address{Kind: schema.KindReservation, Name: "cpu"}, Namespace: "default", Provider: schema.ProviderGCP,
		Min: schema.Capacity{CPU: 8, Memory: 64 << 30, Slices: 1}, Max: schema.Capacity{CPU: 8, Memory: 64 << 30, Slices: 2},
	}
	d.Reservations = append(d.Reservations, pool)
	for i := range n {
		d.Jobs = append(d.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: "driver", Key: schema.IntKey(i)}, Namespace: "default",
			Command:   []schema.Text{schema.Plain("drive")},
			Resources: schema.Resources{Provider: schema.ProviderGCP, Reservation: "cpu", Packed: true, CPU: 4, Memory: 4 << 30, Slices: 1},
			Retries:   schema.Retries{Preemption: schema.Unlimited},
		})
	}
	return d
}

// A rehearsal steps only when a step is due. The history, the goodput and the verdict are
// those of one that steps at every tick.
func TestStepsThatAreNotDueChangeNothing(t *testing.T) {
	lasts := 5 * time.Hour
	if testing.Short() {
		lasts = time.Hour
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := builtIn(t, ScenarioStormy).Cloud
			s.API = cloud.API{} // a call that is not made has no luck of its own
			s.Stockouts = []cloud.Window{{Zone: "us-west4-a", From: 40 * time.Minute, To: 100 * time.Minute, Preempt: true}}
			s.Outages = []cloud.Window{{Zone: "us-central1-a", From: 2 * time.Hour, To: 130 * time.Minute}}
			cfg := Config{
				Desired: mixed(), Scenario: s, For: lasts, Seed: seed + 1,
				Workloads: []Workload{{Job: "job.small", Work: 50 * time.Minute, CheckpointEvery: 10 * time.Minute, Startup: time.Minute}},
			}
			due, all := tell(t, cfg, false), tell(t, cfg, true)
			for i := range max(len(due.events), len(all.events)) {
				if i >= len(due.events) || i >= len(all.events) || due.events[i] != all.events[i] {
					from := max(0, i-3)
					t.Fatalf("event %d differs\nwhen due:   %q\nevery tick: %q", i, due.events[from:min(i+2, len(due.events))], all.events[from:min(i+2, len(all.events))])
				}
			}
			if due.report != all.report {
				t.Errorf("when due:\n%s\nat every tick:\n%s", due.report, all.report)
			}
			if due.steps > all.steps/4 {
				t.Errorf("%d steps when due, %d at every tick: too few are left out", due.steps, all.steps)
			}
			t.Logf("%d events, %d steps of %d", len(due.events), due.steps, all.steps)
		})
	}
}

// Packed tasks run on the hosts of their reservation, and again after one is lost.
func TestPackedTasksAreRehearsed(t *testing.T) {
	rep, err := Run(t.Context(), Config{Desired: withPacked(training(1, "v5litepod-4", "us-west4-a"), 3), Scenario: builtIn(t, ScenarioUsual).Cloud, For: 24 * time.Hour, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range rep.Jobs {
		if j.Goodput < 0.8 {
			t.Errorf("goodput of %s is %g, want over 0.8: %+v", j.Job, j.Goodput, j.Lost)
		}
	}
	for _, v := range rep.Violations {
		t.Error(v)
	}
}
