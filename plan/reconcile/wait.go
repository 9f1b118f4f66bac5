package reconcile

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// ConcludeWaits records why jobs wait, and forgets it of those that wait no more.
func (d *Reconciler) ConcludeWaits() {
	byAddr := func(a, b plan.Waiting) int { return a.Addr.Compare(b.Addr) }
	if !slices.IsSortedFunc(d.Waits, byAddr) {
		slices.SortStableFunc(d.Waits, byAddr)
	}
	d.Plan.Pending = make([]plan.Pending, 0, len(d.Waits))
	for i := range d.Waits {
		w := &d.Waits[i]
		shown := w.Why.Shown(d.Now)
		if n := len(d.Plan.Pending); n > 0 && d.Plan.Pending[n-1].Addr == w.Addr {
			last := &d.Plan.Pending[n-1]
			last.Kind = plan.Chief(last.Kind, w.Why.Kind)
			last.Underway = last.Underway && w.Why.Underway
			last.Blocked = last.Blocked && w.Why.Kind == plan.WaitBlocked
			if !slices.Contains(last.Reasons, shown) {
				last.Reasons = append(last.Reasons, shown)
			}
			continue
		}
		d.Plan.Pending = append(d.Plan.Pending, plan.Pending{Addr: w.Addr, Kind: w.Why.Kind, Reasons: []string{shown}, Underway: w.Why.Underway, Blocked: w.Why.Kind == plan.WaitBlocked})
		// Why a job ended is worth more than that its slices are still going.
		if j := d.JobAt(w.Addr); j != nil && !j.Status.Ended() && j.Reason != w.Why.Text {
			d.Edit(w.Addr).Reason = w.Why.Text
		}
	}
	for _, addr := range d.Settled {
		_, waits := slices.BinarySearchFunc(d.Plan.Pending, addr, func(p plan.Pending, a schema.Address) int { return p.Addr.Compare(a) })
		if !waits {
			d.Edit(addr).Reason = ""
		}
	}
}

// Stamp records when the jobs whose records were changed ended.
func (d *Reconciler) Stamp() {
	for _, addr := range d.EditedJobs {
		j := d.JobAt(addr)
		switch {
		case j == nil:
		case j.Status.Ended() && j.EndedAt.IsZero():
			d.Edit(addr).EndedAt = d.Now
		case !j.Status.Ended() && !j.EndedAt.IsZero():
			d.Edit(addr).EndedAt = time.Time{}
		}
	}
}
