package incremental

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// anyOf puts a job on Google Cloud, on the first of several accelerators that is to be had.
func anyOf(all ...schema.Accelerator) jobOption {
	return func(j *schema.Job) {
		inCloud(j)
		r := &j.Resources
		r.Accelerators, r.TPU, r.GPU = all, all[0].TPU(), all[0].GPU()
	}
}

// scarce refuses slices of some accelerators, anywhere.
func scarce(err error, of ...schema.Accelerator) func(schema.SliceSpec) error {
	return func(spec schema.SliceSpec) error {
		if slices.Contains(of, spec.Accelerator()) {
			return err
		}
		return nil
	}
}

// acceleratorOf is that of all slices of a job, "" where it has none.
func (w *world) acceleratorOf(addr schema.Address) schema.Accelerator {
	w.t.Helper()
	j := w.doc.Jobs[addr]
	if j == nil || len(j.Slices) == 0 {
		return ""
	}
	first := w.doc.Slices[j.Slices[0]].Spec.Accelerator()
	for _, name := range j.Slices {
		if got := w.doc.Slices[name].Spec.Accelerator(); got != first {
			w.t.Fatalf("%s has slices of %s and of %s\n%s", addr, first, got, w.describe())
		}
	}
	return first
}

// ownSlices are those of the stack that are there, by name.
func (w *world) ownSlices() map[string]*simSlice {
	own := maps.Clone(w.slices)
	maps.DeleteFunc(own, func(_ string, s *simSlice) bool { return s.spec.Stack != w.doc.Stack() })
	return own
}

func (w *world) wantAccelerator(addr schema.Address, want schema.Accelerator) {
	w.t.Helper()
	if got := w.acceleratorOf(addr); got != want {
		w.t.Fatalf("%s has %q, want %q\n%s", addr, got, want, w.describe())
	}
}

func (w *world) wantChoice(addr schema.Address, reason state.ChoiceReason, passed ...state.PassedCause) {
	w.t.Helper()
	c := w.job(addr).Choice
	if c == nil || c.Reason != reason || c.Accelerator != w.acceleratorOf(addr) {
		w.t.Fatalf("the choice of %s is %+v, want %s because %s", addr, c, w.acceleratorOf(addr), reason)
	}
	var causes []state.PassedCause
	for _, p := range c.Passed {
		causes = append(causes, p.Cause)
	}
	if !slices.Equal(causes, passed) {
		w.t.Fatalf("the choice of %s passed %+v, want causes %v", addr, c.Passed, passed)
	}
}

// The first alternative is tried in all its zones before the second is.
func TestAlternativesAreTriedInOrder(t *testing.T) {
	a := jobAddr("a")
	for name, c := range map[string]struct {
		refuses func(schema.SliceSpec) error
		want    schema.Accelerator
		zone    string
		reason  state.ChoiceReason
		passed  []state.PassedCause
	}{
		"all are to be had": {scarce(nil), "v5litepod-16", west, state.ChoiceFirst, nil},
		"the first in its second zone": {func(spec schema.SliceSpec) error {
			if spec.Zone == west {
				return errStockout
			}
			return nil
		}, "v5litepod-16", central, state.ChoiceFirst, nil},
		"the second after a stockout": {scarce(errStockout, "v5litepod-16"), "v5p-8", central, state.ChoiceBlocked, []state.PassedCause{state.PassedCapacity}},
		"the second after a quota":    {scarce(errQuota, "v5litepod-16"), "v5p-8", central, state.ChoiceBlocked, []state.PassedCause{state.PassedQuota}},
		"the third, which is no TPU":  {scarce(errStockout, "v5litepod-16", "v5p-8"), "h100:8", west, state.ChoiceBlocked, []state.PassedCause{state.PassedCapacity, state.PassedCapacity}},
		"by causes that differ each its": {func(spec schema.SliceSpec) error {
			return map[string]error{"v5litepod-16": errQuota, "v5p-8": errStockout}[spec.TPU]
		}, "h100:8", west, state.ChoiceBlocked, []state.PassedCause{state.PassedQuota, state.PassedCapacity}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t, nil)
			w.refuses = c.refuses
			w.accept(zoned(configuration(newJob("a", anyOf("v5litepod-16", "v5p-8", "h100:8"))), west, central))
			w.settle(time.Minute)
			w.wantAccelerator(a, c.want)
			w.wantZone(a, c.zone)
			w.wantChoice(a, c.reason, c.passed...)
			if n := len(w.ownSlices()); n != 1 {
				t.Errorf("there are %d slices, want 1", n)
			}
			spec := w.slices[w.sliceOf(a, 0)].spec
			if tasks := len(w.job(a).Last().Tasks); tasks != spec.Hosts {
				t.Errorf("the attempt has %d tasks, want one on each of %d hosts", tasks, spec.Hosts)
			}
			for _, as := range w.assignments {
				if as.Run != nil && as.Run.Accelerator != spec.TPU {
					t.Errorf("its hosts are told of accelerator %q, want %q", as.Run.Accelerator, spec.TPU)
				}
			}
		})
	}
}

// Where none is to be had, a job says why for each alternative and zone, and has the first
// that comes free.
func TestPendingSaysWhyForEachAlternative(t *testing.T) {
	a := jobAddr("a")
	w := newCloud(t, nil)
	w.refuses = func(spec schema.SliceSpec) error {
		if spec.TPU == "v5p-8" {
			return errQuota
		}
		return errStockout
	}
	w.accept(zoned(configuration(newJob("a", anyOf("v5litepod-16", "v5p-8"))), west, central))
	w.until(2*time.Minute, "refused everywhere", func(p *plan.Plan) bool {
		var reasons []string
		for _, pending := range p.Pending {
			reasons = append(reasons, pending.Reasons...)
		}
		text := strings.Join(reasons, "\n")
		return strings.Contains(text, "v5litepod-16: "+west+": stockout: ") && strings.Contains(text, "v5litepod-16: "+central+": stockout: ") &&
			strings.Contains(text, "v5p-8: "+central+": quota: ")
	})
	w.refuses = scarce(errStockout, "v5litepod-16")
	w.settle(40 * time.Minute)
	w.wantAccelerator(a, "v5p-8")
}

// What runs stays where it runs although a better alternative is there again; after a
// preemption the order starts anew.
func TestAlternativesAfterAPreemption(t *testing.T) {
	a := jobAddr("a")
	w := newCloud(t, nil)
	w.refuses = scarce(errStockout, "v5litepod-16")
	w.accept(zoned(configuration(newJob("a", anyOf("v5litepod-16", "v5p-8"))), west, central))
	w.settle(time.Minute)
	w.wantAccelerator(a, "v5p-8")
	w.refuses = nil
	w.pass(2 * capacity.EarlyLoss)
	w.wantAccelerator(a, "v5p-8")
	if j := w.job(a); j.Attempt != 1 {
		t.Fatalf("it is at attempt %d, want the first running on", j.Attempt)
	}
	w.preempt(w.sliceOf(a, 0))
	w.settle(time.Minute)
	w.wantAccelerator(a, "v5litepod-16")
	w.wantChoice(a, state.ChoiceFirst)
	if j := w.job(a); j.Preemptions != 1 || j.Failures != 0 {
		t.Errorf("it spent %d preemptions and %d failures, want 1 and 0", j.Preemptions, j.Failures)
	}
	// The same without a trace, back to the second.
	w.pass(2 * capacity.EarlyLoss)
	w.refuses = scarce(errStockout, "v5litepod-16")
	w.vanish(w.sliceOf(a, 0))
	w.settle(5 * time.Minute)
	w.wantAccelerator(a, "v5p-8")
}

// A task that fails is tried again where it ran.
func TestFailureKeepsTheAlternative(t *testing.T) {
	a := jobAddr("a")
	w := newCloud(t, nil)
	w.refuses = scarce(errStockout, "v5litepod-16")
	w.accept(zoned(configuration(newJob("a", anyOf("v5litepod-16", "v5p-8"), failures(3))), west, central))
	w.settle(time.Minute)
	w.refuses = nil
	w.pass(time.Hour)
	slice := w.sliceOf(a, 0)
	w.fail(slice, 0, 1)
	w.settle(5 * time.Minute)
	if j := w.job(a); j.Attempt != 2 || w.sliceOf(a, 0) != slice {
		t.Errorf("it is at attempt %d on %s, want the second on %s", j.Attempt, w.sliceOf(a, 0), slice)
	}
}

// A gang has one alternative, and keeps what lives of it when it loses a part.
func TestGangHasOneAlternative(t *testing.T) {
	a := jobAddr("a")
	w := newCloud(t, nil)
	w.refuses = scarce(errStockout, "v5litepod-16")
	w.accept(zoned(configuration(newJob("a", anyOf("v5litepod-16", "v5litepod-8"), onSlices(3))), west, central))
	w.settle(time.Minute)
	w.wantAccelerator(a, "v5litepod-8")
	w.pass(2 * capacity.EarlyLoss)
	w.refuses = nil
	kept := w.sliceOf(a, 1)
	w.preempt(w.sliceOf(a, 0))
	w.settle(5 * time.Minute)
	w.wantAccelerator(a, "v5litepod-8")
	if w.sliceOf(a, 1) != kept {
		t.Errorf("slice 1 is %s, want %s, which lived", w.sliceOf(a, 1), kept)
	}
	// What is lost of it is not to be had any more: the whole gang moves.
	w.refuses = scarce(errStockout, "v5litepod-8")
	w.pass(2 * capacity.EarlyLoss)
	w.preempt(w.sliceOf(a, 0))
	w.settle(5 * time.Minute)
	w.wantAccelerator(a, "v5litepod-16")
	if n := len(w.ownSlices()); n != 3 {
		t.Errorf("there are %d slices, want 3", n)
	}
}

// A change of the list replaces what is in use only if it is named no more.
func TestChangesOfAlternatives(t *testing.T) {
	a := jobAddr("a")
	tpu := func(j *schema.Job) { inCloud(j); j.Resources.TPU = "v5p-8" }
	for name, c := range map[string]struct {
		before, after jobOption
		verb          plan.Verb
		want          schema.Accelerator
	}{
		"another order":            {anyOf("v5litepod-16", "v5p-8"), anyOf("v5p-8", "v5litepod-16"), plan.VerbUpdate, "v5p-8"},
		"one more":                 {anyOf("v5litepod-16", "v5p-8"), anyOf("v5litepod-8", "v5litepod-16", "v5p-8"), plan.VerbUpdate, "v5p-8"},
		"one that it has not goes": {anyOf("v5litepod-16", "v5p-8", "h100:8"), anyOf("v5litepod-16", "v5p-8"), plan.VerbUpdate, "v5p-8"},
		"that which it has goes":   {anyOf("v5litepod-16", "v5p-8"), anyOf("v5litepod-16", "h100:8"), plan.VerbReplace, "h100:8"},
		"a list from one type":     {tpu, anyOf("v5litepod-16", "v5p-8"), plan.VerbUpdate, "v5p-8"},
		"one type from a list":     {anyOf("v5litepod-16", "v5p-8"), tpu, plan.VerbUpdate, "v5p-8"},
		"another type from a list": {anyOf("v5litepod-16", "v5p-8"), func(j *schema.Job) { inCloud(j); j.Resources.TPU = "v5litepod-8" }, plan.VerbReplace, "v5litepod-8"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t, nil)
			w.refuses = scarce(errStockout, "v5litepod-16")
			w.accept(zoned(configuration(newJob("a", c.before)), west, central))
			w.settle(time.Minute)
			w.wantAccelerator(a, "v5p-8")
			slice := w.sliceOf(a, 0)
			w.accept(zoned(configuration(newJob("a", c.after)), west, central))
			p := w.step(time.Second)
			if got := p.Changes[0].Verb; got != c.verb {
				t.Errorf("got %s, want %s", got, c.verb)
			}
			w.settle(5 * time.Minute)
			w.wantAccelerator(a, c.want)
			if untouched := w.sliceOf(a, 0) == slice && w.job(a).Attempt == 1; untouched != (c.verb == plan.VerbUpdate) {
				t.Errorf("it runs on %s at attempt %d, was on %s", w.sliceOf(a, 0), w.job(a).Attempt, slice)
			}
		})
	}
}

// With create_before_destroy the new slices are of the alternative that is to be had now.
func TestStagedAlternative(t *testing.T) {
	a := jobAddr("a")
	w := newCloud(t, nil)
	first := func(j *schema.Job) { j.Lifecycle.CreateBeforeDestroy = true }
	w.refuses = scarce(errStockout, "v5litepod-16")
	w.accept(zoned(configuration(newJob("a", anyOf("v5litepod-16", "v5p-8"), first)), west, central))
	w.settle(time.Minute)
	w.accept(zoned(configuration(newJob("a", anyOf("v5litepod-16", "v5litepod-8"), first)), west, central))
	w.step(time.Second)
	w.wantAccelerator(a, "v5p-8")
	if len(w.job(a).Staged) != 1 {
		t.Fatalf("nothing is staged\n%s", w.describe())
	}
	w.settle(5 * time.Minute)
	w.wantAccelerator(a, "v5litepod-8")
	w.wantChoice(a, state.ChoiceBlocked, state.PassedCapacity)
}

// A group is where its first job has its best alternative, all in one zone; one that is
// refused beside others takes the next there, and moves none of them.
func TestGroupOfAlternatives(t *testing.T) {
	one, two := memberAddr("g", "a"), memberAddr("g", "b")
	group := []schema.Job{
		newJob("a", inGroup("g"), anyOf("v5litepod-16", "v5litepod-8")), newJob("b", inGroup("g"), anyOf("v5litepod-8", "v5litepod-4")),
	}
	for name, c := range map[string]struct {
		known bool // that the first zone has none, when the group is placed
		want  schema.Accelerator
		zone  string
	}{
		"blocked before": {true, "v5litepod-16", central},
		"refused then":   {false, "v5litepod-8", west},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t, nil)
			w.refuses = stockoutIn(west)
			if c.known {
				w.accept(zoned(configuration(newJob("z", inZones(west))), west, central))
				w.run(time.Second)
			}
			w.accept(together(zoned(configuration(group...), west, central), sameZone))
			w.settle(5 * time.Minute)
			w.wantTogether(one, two)
			w.wantAccelerator(one, c.want)
			w.wantZone(one, c.zone)
			w.wantAccelerator(two, "v5litepod-8")
		})
	}
}

// Slices that idle are taken first, of whichever alternative they are.
func TestIdleAlternativeFirst(t *testing.T) {
	a := jobAddr("a")
	w := newCloud(t, nil)
	job := func(name string) schema.Job { return newJob(name, anyOf("v5litepod-16", "v5p-8")) }
	w.refuses = scarce(errStockout, "v5litepod-16")
	w.accept(keeping(zoned(configuration(job("a")), west, central), time.Hour))
	w.settle(time.Minute)
	w.mark(a, func(j *state.Job) { j.Stop = true })
	w.settle(time.Minute)
	w.refuses = nil
	w.pass(10 * time.Minute)
	w.accept(keeping(zoned(configuration(job("a"), job("b")), west, central), time.Hour))
	w.settle(time.Minute)
	w.wantAccelerator(jobAddr("b"), "v5p-8")
	w.wantChoice(jobAddr("b"), state.ChoiceIdle, state.PassedIdle)
}
