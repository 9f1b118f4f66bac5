package lifecycle

import (
	"fmt"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// BandName returns the band with an order.
func BandName(order int) schema.Band {
	return [capacity.BandCount]schema.Band{schema.BandProduction, schema.BandInteractive, schema.BandBatch}[order]
}

// YieldsTo returns what people read of a job that makes room for another.
func YieldsTo(addr schema.Address, band schema.Band) string {
	return fmt.Sprintf("yields to %s (band %s)", addr, band)
}

// Yield ends a job that makes room for another, and gives up what it holds.
func (d *Jobs) Yield(addr schema.Address) {
	j := d.Next.Jobs[addr]
	why := "yields to " + j.YieldsTo.String()
	if band, found := d.bandOf(j.YieldsTo); found {
		why = YieldsTo(j.YieldsTo, band)
	}
	if j.Running() {
		if d.stopAttempt(addr, schema.TaskPreempted, why); d.Next.Jobs[addr].Running() {
			return
		}
	}
	by, places := j.YieldsTo, d.quotas(j)
	if d.Released(addr, state.Termination{Cause: state.CauseYielded, Text: why}) {
		d.Tally(addr)
		d.Edit(addr).YieldsTo = schema.Address{}
		d.quotaFreed(places, by)
	}
}

// bandOf is the band that a unit declares.
func (d *Jobs) bandOf(addr schema.Address) (schema.Band, bool) {
	best := capacity.BandCount
	if j := d.Next.Jobs[addr]; j != nil {
		best = capacity.BandOrder(j.Spec.Band)
	} else if addr.Kind == schema.KindJobGroup {
		for _, member := range d.Family(addr) {
			best = min(best, capacity.BandOrder(member.Band))
		}
	}
	if best == capacity.BandCount {
		return "", false
	}
	return BandName(best), true
}
