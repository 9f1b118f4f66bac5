package incremental

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// drawAlternatives is a list of one to three of the accelerators that the jobs of a world ask for.
func drawAlternatives(t *rapid.T) []schema.Accelerator {
	all := rapid.Permutation([]schema.Accelerator{"v5litepod-16", "v5litepod-4", "v5p-8", "h100:8"}).Draw(t, "alternatives")
	return all[:rapid.IntRange(1, 3).Draw(t, "number")]
}

// drawChoosers are a few jobs on Google Cloud, most of them with alternatives, some tied.
func drawChoosers(t *rapid.T) schema.Desired {
	var jobs []schema.Job
	for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
		j := newJob(fmt.Sprintf("c%d", i), anyOf(drawAlternatives(t)...), preemptions(schema.Unlimited), onSlices(rapid.IntRange(1, 2).Draw(t, "slices")))
		if len(j.Resources.Accelerators) == 1 { // the same in other words
			j.Resources.Accelerators = nil
		}
		if rapid.IntRange(0, 2).Draw(t, "tied") == 0 {
			j.Addr.Group = "g"
		}
		j.Lifecycle.CreateBeforeDestroy = rapid.Bool().Draw(t, "first")
		jobs = append(jobs, j)
	}
	desired := together(zoned(configuration(jobs...), west, central, south), func(g *schema.JobGroup) {
		g.SameRegion, g.SameZone = true, rapid.Bool().Draw(t, "same zone")
	})
	if rapid.Bool().Draw(t, "keeps") {
		desired = keeping(desired, time.Minute)
	}
	return desired
}

// market is what is refused where, by zone and accelerator.
type market map[string]error

func (m market) refuses(spec schema.SliceSpec) error {
	return m[spec.Zone+"/"+string(spec.Accelerator())]
}

// changeMarket has something become scarce or free again.
func (m market) change(t *rapid.T) {
	zones := []string{rapid.SampledFrom([]string{west, central, south}).Draw(t, "zone")}
	if rapid.Bool().Draw(t, "everywhere") {
		zones = []string{west, central, south}
	}
	a := rapid.SampledFrom([]schema.Accelerator{"v5litepod-16", "v5litepod-4", "v5p-8", "h100:8"}).Draw(t, "of")
	err := rapid.SampledFrom([]error{nil, errStockout, errQuota}).Draw(t, "rejection")
	for _, zone := range zones {
		m[zone+"/"+string(a)] = err
	}
}

// changeAlternatives is what users do to a list meanwhile.
func changeAlternatives(t *rapid.T, w *world) {
	desired := w.doc.Desired
	desired.Jobs = slices.Clone(desired.Jobs)
	j := &desired.Jobs[rapid.IntRange(0, len(desired.Jobs)-1).Draw(t, "job")]
	all := drawAlternatives(t)
	if j.Addr.Group != "" { // with what it had, the group has a zone in common
		all = rapid.Permutation(j.Resources.Alternatives()).Draw(t, "order")
	}
	j.Resources.Accelerators, j.Resources.TPU, j.Resources.GPU = all, all[0].TPU(), all[0].GPU()
	w.accept(desired)
}

// keepsToOne fails unless each job has slices of one alternative, beside those that are
// going and those that are to take over.
func (w *world) keepsToOne() {
	w.t.Helper()
	for addr, j := range w.doc.Jobs {
		var held []schema.Accelerator
		of := func(names []string) (of []schema.Accelerator) {
			for _, name := range names {
				if s := w.doc.Slices[name]; s != nil && !slices.Contains(of, s.Spec.Accelerator()) {
					of = append(of, s.Spec.Accelerator())
				}
			}
			return of
		}
		held = of(j.Slices)
		if staged := of(j.Staged); len(held) > 1 || len(staged) > 1 || len(staged) > 0 && !j.Spec.Lifecycle.CreateBeforeDestroy {
			w.t.Fatalf("%s has slices of %v and staged ones of %v\n%s", addr, held, staged, w.describe())
		}
		if c := j.Choice; c != nil && len(held) > 0 && held[0] != c.Accelerator {
			w.t.Fatalf("%s has slices of %s, and chose %s\n%s", addr, held[0], c.Accelerator, w.describe())
		}
	}
	for name, s := range w.ownSlices() {
		recorded := w.doc.Slices[name]
		if s.phase == schema.SliceDead || s.phase == schema.SliceDeleting || recorded == nil || !recorded.Terminating.IsZero() || !recorded.IdleSince.IsZero() {
			continue
		}
		if j := w.doc.Jobs[s.spec.Owner]; j != nil && !slices.Contains(j.Slices, name) && !slices.Contains(j.Staged, name) && recorded.Spec.Accelerator() != s.spec.Accelerator() {
			w.t.Fatalf("slice %s lives beside those of %s\n%s", name, s.spec.Owner, w.describe())
		}
	}
}

// noteGoing notes the slices whose deletion is recorded that do not live yet, or are to go
// for another cause, as where a list no longer had them: they go all the same when they live,
// or when the list has them again.
func (w *world) noteGoing(going map[string]bool) {
	for name, s := range w.doc.Slices {
		switch {
		case s.Terminating.IsZero():
			delete(going, name)
		case s.Terminating.Cause != state.CauseMoved || w.slices[name] == nil || w.slices[name].phase != schema.SliceReady:
			going[name] = true
		}
	}
}

// movesNoLiveSlice fails if a slice goes that lives and is all that its job has: nothing
// better is a reason for that. Those in going were to go before they lived.
func (w *world) movesNoLiveSlice(a plan.Action, going map[string]bool) {
	if going[a.Slice.Name] {
		return
	}
	s, recorded := w.slices[a.Slice.Name], w.doc.Slices[a.Slice.Name]
	if a.Verb != plan.DeleteSlice || s == nil || recorded == nil || s.phase != schema.SliceReady || recorded.Terminating.Cause != state.CauseMoved {
		return
	}
	j := w.doc.Jobs[s.spec.Owner]
	isWell := !slices.ContainsFunc(s.hosts, func(h *simHost) bool { return !h.agent })
	if isWell && j != nil && j.Spec.Resources.Slices == 1 && j.Spec.Addr.Group == "" {
		w.t.Fatalf("slice %s lives and is deleted to move\n%s", a.Slice.Name, w.describe())
	}
}

func TestAlternativesUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := newWorld(t), market{}
		w.refuses = m.refuses
		going := map[string]bool{}
		w.loses = func(a plan.Action) bool { w.movesNoLiveSlice(a, going); return false }
		w.accept(drawChoosers(t))
		for range rapid.IntRange(0, 15).Draw(t, "faults") {
			slice, host, found := drawHost(t, w)
			switch kind := rapid.IntRange(0, 8).Draw(t, "fault"); {
			case kind < 3:
				m.change(t)
			case kind == 3:
				changeAlternatives(t, w)
			case kind == 4:
				w.crash()
			case kind == 5:
				w.pass(time.Duration(rapid.IntRange(1, 15).Draw(t, "minutes")) * time.Minute)
			case found && kind == 6:
				w.preempt(slice)
			case found && kind == 7:
				w.vanish(slice)
			case found:
				w.fail(slice, host, 1)
			}
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
			w.keepsToOne()
			w.noteGoing(going)
		}
		clear(m)
		w.clear()
		allRun := func() bool {
			return !slices.ContainsFunc(w.doc.Desired.Jobs, func(want schema.Job) bool {
				j := w.doc.Jobs[want.Addr]
				return j == nil || !j.Ready && !j.Status.Ended()
			})
		}
		for end := w.now.Add(3 * time.Hour); !allRun(); w.noteGoing(going) {
			w.keepsToOne()
			if w.step(5 * time.Second); w.now.After(end) {
				t.Fatalf("not all run\n%s", w.describe())
			}
		}
	})
}
