package reconcile

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Orphans deletes unwanted slices that carry the stack's mark, forgets what
// is gone, and the mailboxes of what is gone.
func (d *Reconciler) Orphans() {
	var unwanted []string
	for name, s := range d.Next.Slices {
		if !d.WantedSlice(name, s.Spec.Owner) {
			unwanted = append(unwanted, name)
		}
	}
	for name := range d.Listed {
		if d.Next.Slices[name] == nil {
			unwanted = append(unwanted, name)
		}
	}
	slices.Sort(unwanted)
	for _, name := range unwanted {
		st, listed := d.Listed[name]
		switch {
		case listed && d.Doubted[name] == plan.DoubtUnwanted:
			if d.Obs.Confirmations[name].Since.IsZero() {
				d.Drift(plan.Drift{Kind: plan.DriftSliceUndeclared, Addr: st.Spec.Owner, Slice: name, Found: fmt.Sprintf("slice %s carries this stack's mark and nothing declared uses it", name), Then: "will be deleted once that is confirmed"})
			}
			d.waitToClear(st.Spec.Owner, d.Unconfirmed(&st.Spec))
		case listed:
			if s := d.Next.Slices[name]; (s == nil || s.Terminating.IsZero()) && st.Phase != schema.SliceDeleting {
				d.Drift(plan.Drift{Kind: plan.DriftSliceUndeclared, Addr: st.Spec.Owner, Slice: name, Found: fmt.Sprintf("slice %s carries this stack's mark and nothing declared uses it", name), Then: "will be deleted"})
			}
			d.Remove(st, change.Decided(state.CauseUnused))
			d.waitToClear(st.Spec.Owner, d.Deletion(name))
		case !d.Known(&d.Next.Slices[name].Spec) || d.IsUnsure(d.Next.Slices[name]):
			d.waitForRead(&d.Next.Slices[name].Spec)
		default:
			d.DropSlice(name)
		}
	}
	d.ForgetUnmanaged()
	d.forgetMailboxes()
}

// waitForRead has the owner of a slice that is not wanted wait until a direct read shows
// that the slice is gone: a list alone might have left it out.
func (d *Reconciler) waitForRead(spec *schema.SliceSpec) {
	if !d.ListedIn(spec.Provider, spec.Zone) {
		return
	}
	text := fmt.Sprintf("slice %s is to go and is not listed; that it is gone is being confirmed", spec.Name)
	d.waitToClear(spec.Owner, plan.Because(plan.WaitUnconfirmed, text))
}

// waitToClear has the owner of a slice that is not wanted wait for what becomes of that.
func (d *Reconciler) waitToClear(owner schema.Address, why plan.Reason) {
	d.Wait(owner, why)
	if d.Clearing == nil {
		d.Clearing = map[schema.Address]bool{}
	}
	d.Clearing[owner] = true
}

// forgetMailboxes removes the mailboxes of slices that are neither recorded nor
// listed, once every provider has been asked.
func (d *Reconciler) forgetMailboxes() {
	if len(d.Obs.Unreachable) > 0 {
		return
	}
	for _, inv := range d.Obs.Inventories {
		if len(inv.Unlisted) > 0 {
			return
		}
	}
	var left []string
	for name := range d.Obs.Assignments {
		if d.isLeft(name) {
			left = append(left, name)
		}
	}
	for name := range d.Obs.Hosts {
		if _, assigned := d.Obs.Assignments[name]; !assigned && d.isLeft(name) {
			left = append(left, name)
		}
	}
	for name := range d.Obs.Booting {
		if _, assigned := d.Obs.Assignments[name]; !assigned && len(d.Obs.Hosts[name]) == 0 && d.isLeft(name) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	for _, name := range left {
		d.Forget(name, schema.Address{})
	}
}

// isLeft reports whether the mailbox of a slice is all that is left of it. One
// that another stack's mark is on is what that stack can be rebuilt from.
func (d *Reconciler) isLeft(name string) bool {
	if d.Next.Slices[name] != nil || d.Listed[name] != nil || d.IsUnmanaged(name) || d.IsReportedAnywhere(name) {
		return false
	}
	if _, damaged := d.Obs.Damaged[name]; damaged {
		return false
	}
	mark := d.Obs.Assignments[name].Stack
	return mark == "" || mark == d.Stack
}
