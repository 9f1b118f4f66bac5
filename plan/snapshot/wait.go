package snapshot

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Wait notes that an address waits. The first reason of a job is also recorded
// in its state, without the time left: a state that changed with every second
// would have to be written every second.
func (d *Draft) Wait(addr schema.Address, reasons ...plan.Reason) {
	for _, why := range reasons {
		d.Waits = append(d.Waits, plan.Waiting{Addr: addr, Why: why})
		d.WakeAt(why.Until)
	}
}

// RejectionKind is the kind of what keeps a slice from being made that was refused.
func (d *Draft) RejectionKind(s *state.Slice) plan.WaitKind {
	if s.OverQuota {
		return plan.WaitQuota
	}
	if w, bad := d.Next.ZoneHealth[plan.StockPlace(&s.Spec)]; bad {
		return plan.WaitKindOf(w.Kind)
	}
	return plan.WaitRetry
}
