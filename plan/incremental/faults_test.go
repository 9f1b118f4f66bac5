package incremental

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// fault lets one fault happen.
func fault(t *rapid.T, w *world) {
	slice, host, found := drawHost(t, w)
	switch rapid.IntRange(0, 17).Draw(t, "fault") {
	case 17:
		w.quota = rapid.SampledFrom([]int{0, 2, 4, 6}).Draw(t, "quota")
	case 0:
		w.crash()
	case 1:
		w.unreachable = !w.unreachable
	case 2:
		w.capacity = rapid.IntRange(0, 4).Draw(t, "capacity")
	case 3:
		w.loses = func(plan.Action) bool { return false }
		if rapid.Bool().Draw(t, "loses") {
			w.loses = func(plan.Action) bool { return rapid.IntRange(0, 2).Draw(t, "lost") == 0 }
		}
	case 4, 5, 6:
		changeMind(t, w)
	case 7:
		w.createTakes = time.Duration(rapid.IntRange(1, 200).Draw(t, "create")) * time.Second
		w.bootTakes = w.createTakes / 2
	case 8:
		w.stopTakes = time.Duration(rapid.IntRange(1, 20).Draw(t, "stop")) * time.Second
	case 9:
		w.run(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
	case 10:
		if found {
			w.fail(slice, host, 1)
		}
	case 11:
		if found {
			w.killAgent(slice, host)
		}
	case 12:
		if found {
			w.killHost(slice, host)
		}
	case 13:
		if found {
			w.preempt(slice)
		}
	case 14:
		if found {
			w.vanish(slice)
		}
	case 15:
		if found {
			w.notice(slice, host)
		}
	case 16:
		if found {
			w.mute(slice, host, rapid.Bool().Draw(t, "muted"))
		}
	}
}

func drawHost(t *rapid.T, w *world) (string, int, bool) {
	var names []string
	for name, s := range w.slices {
		if s.spec.Stack == w.doc.Stack() && !isPacked(s) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", 0, false
	}
	slices.Sort(names)
	name := rapid.SampledFrom(names).Draw(t, "slice")
	return name, rapid.IntRange(0, len(w.slices[name].hosts)-1).Draw(t, "host"), true
}

// changeMind is what users do meanwhile.
func changeMind(t *rapid.T, w *world) {
	desired := w.doc.Desired
	desired.Jobs = slices.Clone(desired.Jobs)
	if len(desired.Jobs) == 0 {
		return
	}
	if rapid.Bool().Draw(t, "untargeted") { // as read from files, all triggers are looked at anew
		for i := range desired.Jobs {
			l := &desired.Jobs[i].Lifecycle
			l.TriggeredBy = slices.Clone(l.TriggeredBy)
			for n := range l.TriggeredBy {
				l.TriggeredBy[n].Digest = ""
			}
		}
	}
	i := rapid.IntRange(0, len(desired.Jobs)-1).Draw(t, "job")
	j := &desired.Jobs[i]
	switch rapid.IntRange(0, 10).Draw(t, "change") {
	case 10:
		if desired.Namespaces == nil {
			desired = keeping(desired, time.Minute)
		} else {
			desired.Namespaces = nil
		}
	case 8, 9:
		j.Lifecycle = drawLifecycle(t, desired.Jobs)
		if len(desired.Reservations) > 0 && rapid.Bool().Draw(t, "of the pool") {
			desired.Reservations = slices.Clone(desired.Reservations)
			desired.Reservations[0].Lifecycle.PreventDestroy = rapid.Bool().Draw(t, "protected")
		}
	case 0:
		withEnv("V", fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "env")))(j)
	case 1:
		if j.Resources.Reservation == "" {
			onTPU(rapid.SampledFrom([]string{"v5litepod-4", "v5litepod-32"}).Draw(t, "tpu"))(j)
		}
	case 2: // its dependents go with it
		gone := j.Addr
		desired.Jobs = slices.DeleteFunc(desired.Jobs, func(j schema.Job) bool {
			return j.Addr == gone || slices.Contains(j.DependsOn, gone) || slices.Contains(j.Uses, gone)
		})
	case 3:
		if w.doc.Jobs[j.Addr] != nil {
			w.mark(j.Addr, func(j *state.Job) { j.Replace = true })
		}
		return
	case 4:
		if w.doc.Jobs[j.Addr] != nil && !w.doc.Jobs[j.Addr].Status.Ended() {
			w.mark(j.Addr, func(j *state.Job) { j.Stop = true })
		}
		return
	case 6, 7: // the pool grows, shrinks, changes its shape
		if len(desired.Reservations) == 0 {
			return
		}
		pool := desired.Reservations[0]
		pool.Min.Slices = rapid.IntRange(1, 6).Draw(t, "min")
		if rapid.Bool().Draw(t, "reshape") {
			pool.Min.TPU, pool.Min.CPU = "v5litepod-8", 0
		}
		drawElastic(t, &pool)
		desired = withPools(desired, pool)
		if settled := change.Settled(desired, w.doc); len(capacity.Check(&desired))+len(capacity.Check(&settled)) > 0 {
			return
		}
	case 5:
		desired.Jobs = append(desired.Jobs, newJob(fmt.Sprintf("k%d", rapid.IntRange(0, 3).Draw(t, "new"))))
		desired.Jobs = slices.CompactFunc(desired.Jobs, func(a, b schema.Job) bool { return a.Addr == b.Addr })
		slices.SortFunc(desired.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
		desired.Jobs = slices.CompactFunc(desired.Jobs, func(a, b schema.Job) bool { return a.Addr == b.Addr })
	}
	w.accept(desired)
}

// clear ends all faults; what hosts have lost stays lost.
func (w *world) clear() {
	w.unreachable, w.capacity, w.quota, w.loses = false, 0, 0, func(plan.Action) bool { return false }
	w.createTakes, w.bootTakes, w.deleteTakes, w.stopTakes = time.Second, time.Second, time.Second, time.Second
	for _, s := range w.slices {
		for _, h := range s.hosts {
			h.muted, h.notified = false, false
		}
	}
}
