package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// eachKind is a job on each kind of slice: a node, a node of four hosts, one by a
// queued resource, a machine, and a managed instance group.
func eachKind() schema.Desired {
	d := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "rehearsal", Zones: []string{"us-central1-a"}}}}
	for _, each := range []struct {
		name string
		r    schema.Resources
	}{
		{"node", schema.Resources{TPU: "v5litepod-4"}},
		{"large", schema.Resources{TPU: "v5litepod-16"}},
		{"queued", schema.Resources{TPU: "v5litepod-4", Cloud: schema.CloudSpec{Provisioning: schema.ProvisioningQueued}}},
		{"machine", schema.Resources{CPU: 1, Cloud: schema.CloudSpec{Engine: schema.EngineGCE}}},
		{"group", schema.Resources{TPU: "v5p-32", Cloud: schema.CloudSpec{Engine: schema.EngineGCE}}},
	} {
		each.r.Provider, each.r.Slices, each.r.Preemptible, each.r.Zones = schema.ProviderGCP, 1, true, []string{"us-central1-a"}
		d.Jobs = append(d.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: each.name}, Namespace: "default",
			Command: []schema.Text{schema.Plain("work")}, Resources: each.r,
			Retries: schema.Retries{Preemption: schema.Unlimited},
		})
	}
	return d
}

// repairedWithin is how long a preempted slice may take to be up again while every list
// is wrong: two minutes beside what the emulated cloud takes.
const repairedWithin = 2*time.Minute + 30*time.Second

// blindness is how lists are wrong.
type blindness struct {
	fault cloud.ListFault
	of    string
	// makes is what becomes of an inventory, given the one of when that began; nil: nothing.
	makes func(is, was schema.Inventory) (schema.Inventory, error)
}

// blindnesses are all ways in which all lists can be wrong for ever.
func blindnesses() map[string]blindness {
	all := map[string]blindness{
		"frozen": {makes: func(_, was schema.Inventory) (schema.Inventory, error) { return was, nil }},
		"failing": {makes: func(schema.Inventory, schema.Inventory) (schema.Inventory, error) {
			return schema.Inventory{}, &providers.Error{Kind: schema.ErrorUnavailable, Op: "list slices", Err: errors.New("503")}
		}},
		"without its zone": {makes: func(schema.Inventory, schema.Inventory) (schema.Inventory, error) {
			return schema.Inventory{Unlisted: map[string]string{"us-central1-a": "unreachable"}}, nil
		}},
	}
	for _, fault := range cloud.ListFaults() {
		all[string(fault)] = blindness{fault: fault}
		for _, of := range cloud.ListNames() {
			all[fmt.Sprintf("%s %s", fault, of)] = blindness{fault: fault, of: of}
		}
	}
	return all
}

// blinded is a provider whose lists are wrong once that has begun.
type blinded struct {
	providers.Provider
	by    blindness
	begun bool
	last  schema.Inventory
}

func (b *blinded) Unwrap() providers.Provider { return b.Provider }

func (b *blinded) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	is, err := b.Provider.Inventory(ctx, stack)
	if b.begun && b.by.makes != nil {
		return b.by.makes(is, b.last)
	}
	b.last = is
	return is, err
}

func (b *blinded) Close() error {
	if closer, ok := b.Provider.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// TestRepairUnderWrongLists has every list be wrong from some time on, in each way, and
// preempts one slice of each kind: all of them are up again soon, and nothing that lives
// is deleted.
func TestRepairUnderWrongLists(t *testing.T) {
	t.Parallel()
	for name, by := range blindnesses() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openBlinded(t, by)
			w.blind()
			began := w.clock.Now()
			for _, g := range w.cloud.All() {
				if err := w.cloud.Preempt(g.Key, false); err != nil {
					t.Fatal(err)
				}
			}
			again := map[string]time.Duration{}
			w.pass(10*time.Minute, func() bool {
				for addr, g := range w.oracle.running {
					if g.whole && g.since.After(began) && again[addr.Name] == 0 {
						again[addr.Name] = g.since.Sub(began)
					}
				}
				return len(again) == len(w.cfg.Desired.Jobs)
			})
			for i := range w.cfg.Desired.Jobs {
				job := w.cfg.Desired.Jobs[i].Addr.Name
				if took := again[job]; took == 0 || took > repairedWithin {
					t.Errorf("job %s was up again after %s, want within %s", job, took, repairedWithin)
				}
			}
			t.Logf("up again after %v", again)
		})
	}
}

// TestNothingLeaksUnderWrongLists has every list be wrong and then declares nothing any
// more: every slice is deleted, whatever lists show.
func TestNothingLeaksUnderWrongLists(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"empty", "frozen", "stale", "token"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openBlinded(t, blindnesses()[name])
			w.blind()
			w.books.released = true
			desired := w.cfg.Desired
			desired.Jobs = nil
			if err := w.accept(t.Context(), desired); err != nil {
				t.Fatal(err)
			}
			w.pass(10*time.Minute, func() bool { return len(w.stepper.Document().Slices) == 0 })
			if left := w.cloud.All(); len(left) > 0 || len(w.stepper.Document().Slices) > 0 {
				t.Errorf("%d slices are left in the cloud and %d in the state, the first is %+v", len(left), len(w.stepper.Document().Slices), left)
			}
		})
	}
}

// blindedWorld is a rehearsal whose lists can be made wrong.
type blindedWorld struct {
	*rehearsal
	t        *testing.T
	provider *blinded
}

// openBlinded is a world in which a job on a slice of each kind runs, and all is well.
func openBlinded(t *testing.T, by blindness) *blindedWorld {
	t.Helper()
	w := &blindedWorld{t: t, provider: &blinded{by: by}}
	r, err := open(t.Context(), Config{
		Desired: eachKind(), For: 24 * time.Hour, Seed: 1,
		connect: func(ctx context.Context, r *rehearsal) (providers.Provider, error) {
			p, err := connect(ctx, r)
			w.provider.Provider = p
			return w.provider, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.rehearsal = r
	t.Cleanup(func() {
		for _, v := range r.oracle.found {
			t.Error(v)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.accept(t.Context(), r.cfg.Desired); err != nil {
		t.Fatal(err)
	}
	w.pass(10*time.Minute, w.allRun)
	if !w.allRun() {
		t.Fatal("not all jobs run before anything is wrong")
	}
	return w
}

// blind has lists be wrong from now on, and lets half an hour pass.
func (w *blindedWorld) blind() {
	w.t.Helper()
	w.pass(30*time.Minute, nil)
	w.provider.begun = true
	if by := w.provider.by; by.fault != "" {
		if err := w.cloud.MisreadList(by.fault, by.of, "", 0, 0); err != nil {
			w.t.Fatal(err)
		}
	}
	w.pass(30*time.Minute, nil)
	if !w.allRun() {
		w.t.Fatal("not all jobs run although nothing has happened to their slices")
	}
}

// pass lets time pass until something is so; nil: all of it.
func (w *blindedWorld) pass(within time.Duration, done func() bool) {
	w.t.Helper()
	if done == nil {
		done = func() bool { return false }
	}
	if err := w.until(w.t.Context(), w.clock.Now().Add(within), done); err != nil {
		w.t.Fatal(err)
	}
}

// allRun reports whether all tasks of all jobs run.
func (w *blindedWorld) allRun() bool {
	whole := 0
	for _, g := range w.oracle.running {
		if g.whole {
			whole++
		}
	}
	return whole == len(w.cfg.Desired.Jobs)
}
