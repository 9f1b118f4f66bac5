package incremental

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// manyRunning is a world in which n jobs run on slices of their own in the cloud.
func manyRunning(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t)
	var jobs []schema.Job
	for i := range n {
		jobs = append(jobs, newJob(string(rune('a'+i)), inZones(west)))
	}
	w.accept(zoned(configuration(jobs...), west))
	w.settle(time.Minute)
	return w
}

// firstSlice is the name of the first recorded slice.
func firstSlice(w *world) string { return slices.Sorted(maps.Keys(w.doc.Slices))[0] }

// wantUntouched steps for a while and wants every job to run on in its first attempt,
// and no slice to be deleted or asked for again.
func wantUntouched(t *testing.T, w *world, during time.Duration) {
	t.Helper()
	for end := w.now.Add(during); w.now.Before(end); {
		p := w.step(500 * time.Millisecond)
		for _, a := range p.Actions {
			if a.Verb == plan.DeleteSlice || a.Verb == plan.CreateSlice || a.Verb == plan.ForgetSlice {
				t.Fatalf("%s %s", a.Verb, a.Slice.Name)
			}
		}
	}
	for addr, j := range w.doc.Jobs {
		if j.Attempt != 1 || !j.Running() || j.Preemptions > 0 {
			t.Errorf("%s is at attempt %d, running %v, with %d preemptions", addr, j.Attempt, j.Running(), j.Preemptions)
		}
	}
}

// A list that misreads the world, once or for an hour, harms no slice whose hosts
// report, whether or not slices can be read directly meanwhile.
func TestMisreadListsHarmNothing(t *testing.T) {
	shown := func(change func(*schema.SliceStatus)) func(schema.Inventory) schema.Inventory {
		return func(inv schema.Inventory) schema.Inventory {
			inv.Slices = slices.Clone(inv.Slices)
			for i := range inv.Slices {
				if inv.Slices[i].Spec.Stack == testLineage[:12] {
					change(&inv.Slices[i])
				}
			}
			return inv
		}
	}
	for name, misreads := range map[string]func(schema.Inventory) schema.Inventory{
		"empty": func(schema.Inventory) schema.Inventory { return schema.Inventory{} },
		"short": func(inv schema.Inventory) schema.Inventory {
			return schema.Inventory{Slices: inv.Slices[:len(inv.Slices)/2]}
		},
		"dead": shown(func(st *schema.SliceStatus) {
			st.Phase, st.Reason, st.Cause = schema.SliceDead, "its node is PREEMPTED", schema.ErrorPreempted
		}),
		"deleting":    shown(func(st *schema.SliceStatus) { st.Phase = schema.SliceDeleting }),
		"other shape": shown(func(st *schema.SliceStatus) { st.Spec.TPU, st.Spec.Hosts = "v5litepod-8", 2 }),
	} {
		for _, unreadable := range []bool{false, true} {
			for _, lasts := range []time.Duration{500 * time.Millisecond, time.Hour} {
				t.Run(name, func(t *testing.T) {
					w := manyRunning(t, 4)
					w.misreads, w.unreadable = misreads, unreadable
					wantUntouched(t, w, lasts)
					w.misreads = nil
					wantUntouched(t, w, time.Minute)
					if len(w.last.Doubts) > 0 || len(w.doc.Conditions) > 0 {
						t.Errorf("doubts %v and conditions %v are left", w.last.Doubts, w.doc.Conditions)
					}
				})
			}
		}
	}
}

// A slice that is gone is made again as soon as it was read directly, and where that
// cannot be, once it was missing for a minute and its hosts were silent.
func TestGoneIsConfirmed(t *testing.T) {
	for _, c := range []struct {
		name       string
		unreadable bool
		atLeast    time.Duration
		within     time.Duration
	}{
		{"by a read", false, 0, 5 * time.Second},
		{"by a minute of silence", true, snapshot.DoubtFor, snapshot.DoubtFor + 5*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := manyRunning(t, 1)
			w.unreadable = c.unreadable
			delete(w.slices, firstSlice(w))
			began := w.now
			w.until(c.within, "gone", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("a")].Preemptions == 1 })
			if took := w.now.Sub(began); took < c.atLeast {
				t.Errorf("it was gone after %s", took)
			}
			w.until(2*time.Minute, "made again", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("a")].Attempt == 2 })
		})
	}
}

// That the reports of hosts were not read yet, as after a takeover, is no silence: a list that
// leaves their slices out for long harms nothing.
func TestUnreadReportsAreNoSilence(t *testing.T) {
	w := manyRunning(t, 4)
	w.unread, w.unreadable = true, true
	wantUntouched(t, w, time.Minute)
	w.misreads = func(schema.Inventory) schema.Inventory { return schema.Inventory{} }
	wantUntouched(t, w, 2*snapshot.DoubtFor)
	w.misreads = nil
	wantUntouched(t, w, time.Minute)
	w.unread = false
	wantUntouched(t, w, time.Minute)
}

// What a job waits for that needs a slice in doubt has a typed kind.
func TestDoubtIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.bootTakes = time.Minute
	w.accept(zoned(configuration(newJob("a", inZones(west))), west))
	w.until(10*time.Second, "listed", func(*plan.Plan) bool { return len(w.doc.Slices) == 1 && w.doc.Slices[firstSlice(w)].Listed })
	w.unreadable = true
	w.misreads = func(schema.Inventory) schema.Inventory { return schema.Inventory{} }
	p := w.step(time.Second)
	if i, waits := place(p.Pending, jobAddr("a")); !waits || p.Pending[i].Kind != plan.WaitUnconfirmed {
		t.Errorf("pending is %+v", p.Pending)
	}
}

// Many slices that disappear at once are reported, as long as they are in doubt.
func TestMassDisappearanceIsReported(t *testing.T) {
	w := manyRunning(t, 4)
	w.unreadable = true
	w.misreads = func(schema.Inventory) schema.Inventory { return schema.Inventory{} }
	since := w.now
	before := w.doc
	p := w.step(time.Second)
	missing := w.doc.Conditions[schema.ProviderGCP].Missing
	if missing == nil || missing.Slices != 4 || missing.Of != 4 || !missing.Since.Equal(since) {
		t.Fatalf("missing is %+v", missing)
	}
	told := false
	for _, e := range change.Events(before, p, w.now) {
		told = told || strings.Contains(e.Text, "4 of 4 slices are missing")
	}
	if !told {
		t.Errorf("no event reports it: %v", change.Events(before, p, w.now))
	}
	w.misreads = nil
	w.step(time.Second)
	if len(w.doc.Conditions) > 0 {
		t.Errorf("conditions are %+v", w.doc.Conditions)
	}
}

// A slice with the stack's mark that reports and that nothing is recorded of is not
// deleted at first sight: what shows it may be old.
func TestUnrecordedSliceThatReportsIsReadFirst(t *testing.T) {
	for _, unreadable := range []bool{false, true} {
		w := manyRunning(t, 1)
		stale := *w.slices[firstSlice(w)]
		stale.spec.Name, stale.spec.Owner = "b-0-stale", jobAddr("b")
		stale.hosts = []*simHost{{agent: true, boot: 1}, {agent: true, boot: 1}, {agent: true, boot: 1}, {agent: true, boot: 1}}
		w.slices[stale.spec.Name] = &stale
		r := w.reports[hostKey{firstSlice(w), 0}]
		r.Slice, r.Task = stale.spec.Name, nil
		w.reports[hostKey{stale.spec.Name, 0}] = r
		w.unreadable = true
		w.step(500 * time.Millisecond)
		if stale.phase == schema.SliceDeleting || w.slices[stale.spec.Name].phase == schema.SliceDeleting {
			t.Fatal("it was deleted at first sight")
		}
		w.unreadable = unreadable
		w.until(2*snapshot.DoubtFor, "deleted", func(*plan.Plan) bool {
			s := w.slices[stale.spec.Name]
			return s == nil || s.phase == schema.SliceDeleting
		})
	}
}

// Which provider cannot be seen is recorded, since when and why, and forgotten once
// it is seen.
func TestUnseenProviderIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.accept(configuration(newJob("a")))
	w.settle(time.Minute)
	w.unreachable = true
	since := w.now
	w.step(time.Second)
	w.step(time.Second)
	unseen := w.doc.Conditions[schema.ProviderLocal].Unseen
	if unseen == nil || !unseen.Since.Equal(since) || unseen.Kind != schema.ErrorUnavailable || unseen.Text != "503 try again" {
		t.Fatalf("unseen is %+v", unseen)
	}
	w.unreachable = false
	w.step(time.Second)
	if len(w.doc.Conditions) > 0 {
		t.Errorf("conditions are %+v", w.doc.Conditions)
	}
}

// What a provider lists and cannot read is neither gone nor deleted, however long
// that lasts, and is shown.
func TestSkippedSliceIsLeftAlone(t *testing.T) {
	w := manyRunning(t, 1)
	name := firstSlice(w)
	item := schema.SkippedItem{Name: name, Zone: w.doc.Slices[name].Spec.Zone, Reason: schema.SkipUnreadable, Text: "its metadata cannot be read"}
	w.misreads = func(inv schema.Inventory) schema.Inventory {
		inv.Slices = slices.DeleteFunc(inv.Slices, func(st schema.SliceStatus) bool { return st.Spec.Name == name })
		inv.Skipped = []schema.SkippedItem{item}
		return inv
	}
	wantUntouched(t, w, time.Hour)
	if got := w.doc.Conditions[schema.ProviderGCP].Skipped; !slices.Equal(got, []schema.SkippedItem{item}) {
		t.Errorf("skipped are %+v", got)
	}
}
