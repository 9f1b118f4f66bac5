package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// reserved finds reservations with more slices than they may have, and slices that
// are given up as idle though a job has them.
func (o *oracle) reserved(before, after *state.Document) {
	w := o.w
	w.t.Helper()
	held := capacity.HoldersIn(after)
	for name, s := range after.Slices {
		holder, is := held[name]
		if is && !s.IdleSince.IsZero() {
			w.t.Fatalf("slice %s is held by %s and idles since %s\n%s", name, holder, s.IdleSince.Format(time.TimeOnly), w.describe())
		}
		was := before.Slices[name]
		if is && (s.Terminating.Decided() == state.CauseIdle || s.Terminating.Decided() == state.CauseMakesRoom) && (was == nil || was.Terminating.Decided() != s.Terminating.Decided()) {
			w.t.Fatalf("slice %s is given up as idle and held by %s\n%s", name, holder, w.describe())
		}
	}
	for i := range after.Desired.Reservations {
		// As it is carried out: what is desired may be refused.
		if r := after.Resources[after.Desired.Reservations[i].Addr].Reservation; r != nil {
			o.bounded(r, before, after, held)
		}
	}
}

// bounded finds slices of a reservation that are new and too many.
func (o *oracle) bounded(r *schema.Reservation, before, after *state.Document, held map[string][]schema.Address) {
	w := o.w
	n, fresh := 0, ""
	for name, s := range after.Slices {
		if refused := w.slices[name] == nil && (s.PendingSince.IsZero() || s.Error != ""); s.Spec.Owner != r.Addr || refused {
			continue
		}
		n++
		if before.Slices[name] == nil && w.slices[name] == nil {
			fresh = name
		}
	}
	if most := max(r.Min.Slices, r.Max.Slices); n > most && fresh != "" {
		w.t.Fatalf("slice %s is the %d-th of %s, which may have %d\n%s", fresh, n, r.Addr, most, w.describe())
	}
	for name, s := range after.Slices { // what is assigned to is held
		if a := w.assignments[name]; s.Spec.Owner == r.Addr && a.Run != nil && s.Terminating.Cause == state.CauseIdle && before.Slices[name] != nil && before.Slices[name].Terminating.IsZero() {
			if j := after.Jobs[a.Run.Job]; j != nil && j.Running() && slices.Contains(j.Last().Slices, name) {
				w.t.Fatalf("slice %s is given up as idle and %s was assigned to it (held by %s)\n%s", name, a.Run.Job, held[name], w.describe())
			}
		}
	}
}
