package lifecycle

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Declarations decides what becomes of namespaces, groups and reservations, and
// which changes a lifecycle rule blocks.
type Declarations struct {
	*Jobs

	shown map[schema.Address]plan.Change // instead of what is done: they are refused
}

// Declare settles what has no processes of its own: namespaces, groups
// and the record of reservations, whose slices are pools' business.
func (d *Declarations) Declare() {
	declared := make(map[schema.Address]bool, len(d.Doc.Resources))
	for i := range d.Desired.Namespaces {
		n := &d.Desired.Namespaces[i]
		declared[n.Addr] = true
		d.declare(n.Addr, n, state.Resource{Namespace: n})
	}
	for i := range d.Desired.Reservations {
		r := &d.Desired.Reservations[i]
		declared[r.Addr] = true
		d.declare(r.Addr, r, state.Resource{Reservation: r})
	}
	for i := range d.Desired.Groups {
		g := &d.Desired.Groups[i]
		declared[g.Addr] = true
		d.declare(g.Addr, g, state.Resource{Group: g})
	}
	for i := range d.Desired.Notifications {
		n := &d.Desired.Notifications[i]
		declared[n.Addr] = true
		d.declare(n.Addr, n, state.Resource{Notification: n})
	}
	for _, addr := range slices.SortedFunc(maps.Keys(d.Doc.Resources), schema.Address.Compare) {
		if declared[addr] {
			continue
		}
		d.withdrawn = append(d.withdrawn, addr)
		if d.Doc.Resources[addr].Launch == nil {
			d.Plan.Changes = append(d.Plan.Changes, planchange.Removal(addr, d.Doc.Resources[addr]))
		}
	}
}

func (d *Declarations) declare(addr schema.Address, spec any, r state.Resource) {
	cur, exists := d.Doc.Resources[addr]
	if exists && plan.SameResource(cur, r) {
		d.Plan.Changes = append(d.Plan.Changes, plan.Change{Addr: addr, Verb: plan.VerbNone})
		if r.Reservation != nil && !planchange.EqualLifecycles(&r.Reservation.Lifecycle, &cur.Reservation.Lifecycle) {
			r.Since, r.Launch = cur.Since, cur.Launch
			d.Mutable().Resources[addr] = planchange.RecordOf(spec, r)
		}
		return
	}
	r.Since = d.Now
	change := plan.Change{Addr: addr, Verb: plan.VerbCreate, Attrs: planchange.ChangedAttrs(nil, planchange.ResourceAttrs(r))}
	if exists {
		change = planchange.ResourceChange(addr, cur, r)
	}
	d.Plan.Changes = append(d.Plan.Changes, change)
	d.Mutable().Resources[addr] = planchange.RecordOf(spec, r)
}
