package rehearse

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// eachKind is a job on each kind of slice: a node, a node of four hosts, one by a
// queued resource, a machine, and a managed instance group.
func eachKind() schema.Desired {
	d := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "rehearsal", Zones: []string{"us-west4-a"}}}}
	for _, each := range []struct {
		name string
		r    schema.Resources
	}{
		{"node", schema.Resources{TPU: "v5litepod-4"}},
		{"large", schema.Resources{TPU: "v5litepod-16"}},
		{"queued", schema.Resources{TPU: "v5litepod-4", Cloud: schema.CloudSpec{Provisioning: schema.ProvisioningQueued}}},
		{"machine", schema.Resources{CPU: 1, Cloud: schema.CloudSpec{Engine: schema.EngineGCE}}},
		{"group", schema.Resources{TPU: "v5litepod-16", Cloud: schema.CloudSpec{Engine: schema.EngineGCE}}},
	} {
		each.r.Provider, each.r.Slices, each.r.Preemptible, each.r.Zones = schema.ProviderGCP, 1, true, []string{"us-west4-a"}
		d.Jobs = append(d.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: each.name}, Namespace: "default",
			Command: []schema.Text{schema.Plain("work")}, Resources: each.r,
			Retries: schema.Retries{Preemption: schema.Unlimited},
		})
	}
	return d
}

// repairedWithin is how long a preempted slice may take to be asked for again, and to
// come up, while every list is wrong: two minutes beside what the cloud takes.
const repairedWithin = 2*time.Minute + 30*time.Second

// TestRepairUnderWrongLists has every list be wrong from some time on, in each way, and
// preempts one slice of each kind: all of them are up again soon, and nothing that lives is deleted.
func TestRepairUnderWrongLists(t *testing.T) {
	t.Parallel()
	for _, fault := range cloud.ListFaults() {
		for _, of := range append(cloud.ListNames(), "") {
			t.Run(fmt.Sprintf("%s/%s", fault, of), func(t *testing.T) {
				t.Parallel()
				repairUnderWrongLists(t, fault, of)
			})
		}
	}
}

func repairUnderWrongLists(t *testing.T, fault cloud.ListFault, of string) {
	desired := eachKind()
	r, err := open(t.Context(), Config{Desired: desired, For: 24 * time.Hour, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := r.accept(t.Context(), r.cfg.Desired); err != nil {
		t.Fatal(err)
	}
	until := func(within time.Duration, done func() bool) {
		t.Helper()
		if err := r.until(t.Context(), r.clock.Now().Add(within), done); err != nil {
			t.Fatal(err)
		}
	}
	wholly := func() int {
		n := 0
		for _, g := range r.oracle.running {
			if g.whole {
				n++
			}
		}
		return n
	}
	all := len(desired.Jobs)
	until(10*time.Minute, func() bool { return wholly() == all })
	if n := wholly(); n != all {
		t.Fatalf("%d of %d jobs run before anything is wrong", n, all)
	}
	until(30*time.Minute, func() bool { return false })
	if err := r.cloud.MisreadList(fault, of, "", 0, 0); err != nil {
		t.Fatal(err)
	}
	until(30*time.Minute, func() bool { return false })
	began := r.clock.Now()
	for _, g := range r.cloud.All() {
		if err := r.cloud.Preempt(g.Key, false); err != nil {
			t.Fatal(err)
		}
	}
	again := map[string]time.Duration{}
	until(10*time.Minute, func() bool {
		for addr, g := range r.oracle.running {
			if g.whole && g.since.After(began) && again[addr.Name] == 0 {
				again[addr.Name] = g.since.Sub(began)
			}
		}
		return len(again) == all
	})
	for i := range desired.Jobs {
		name := desired.Jobs[i].Addr.Name
		if took := again[name]; took == 0 || took > repairedWithin {
			t.Errorf("job %s was up again after %s, want within %s", name, took, repairedWithin)
		}
	}
	t.Logf("up again after %v", again)
	for _, v := range r.oracle.found {
		t.Error(v)
	}
}
