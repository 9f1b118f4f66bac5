package plan

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// orphans deletes what carries the stack's mark and nobody wants, forgets what
// is gone, and the mailboxes of what is gone.
func (d *differ) orphans() {
	var unwanted []string
	for name, s := range d.next.Slices {
		if !d.wantedSlice(name, s.Spec.Owner) {
			unwanted = append(unwanted, name)
		}
	}
	for name := range d.slices {
		if d.next.Slices[name] == nil {
			unwanted = append(unwanted, name)
		}
	}
	slices.Sort(unwanted)
	for _, name := range unwanted {
		st, listed := d.slices[name]
		switch {
		case listed && d.doubted[name] == DoubtUnwanted:
			if d.obs.Confirmations[name].Since.IsZero() {
				d.drift(st.Spec.Owner, name, fmt.Sprintf("slice %s carries this stack's mark and nothing declared uses it", name), "will be deleted once that is confirmed")
			}
			d.wait(st.Spec.Owner, d.unconfirmed(&st.Spec))
		case listed:
			if s := d.next.Slices[name]; (s == nil || s.Terminating.IsZero()) && st.Phase != schema.SliceDeleting {
				d.drift(st.Spec.Owner, name, fmt.Sprintf("slice %s carries this stack's mark and nothing declared uses it", name), "will be deleted")
			}
			d.remove(st, decided(state.CauseUnused))
			d.wait(st.Spec.Owner, d.deletion(name))
			if d.clearing == nil {
				d.clearing = map[schema.Address]bool{}
			}
			d.clearing[st.Spec.Owner] = true
		case !d.known(&d.next.Slices[name].Spec) || d.isUnsure(d.next.Slices[name]):
			d.waitForRead(&d.next.Slices[name].Spec)
		default:
			d.dropSlice(name)
		}
	}
	d.forgetDisowned()
	d.forgetMailboxes()
}

// waitForRead has the owner of a slice that is not wanted wait until a direct read shows
// that the slice is gone: a list alone might have left it out.
func (d *differ) waitForRead(spec *schema.SliceSpec) {
	if !d.listedIn(spec.Provider, spec.Zone) {
		return
	}
	text := fmt.Sprintf("slice %s is to go and is not listed; that it is gone is being confirmed", spec.Name)
	d.wait(spec.Owner, because(WaitUnconfirmed, text))
	if d.clearing == nil {
		d.clearing = map[schema.Address]bool{}
	}
	d.clearing[spec.Owner] = true
}

// wantedSlice reports whether a job or a declared reservation holds a slice, or it
// is kept for the next job.
// What a reservation has too much is pools' business.
func (d *differ) wantedSlice(name string, owner schema.Address) bool {
	if owner.Kind == schema.KindReservation {
		if _, recorded := d.next.Resources[owner]; recorded {
			return true
		}
		_, held := d.heldBy(name)
		return held
	}
	j := d.next.Jobs[owner]
	return j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name) || d.isKeptIdle(name))
}

// forgetMailboxes removes the mailboxes of slices that are neither recorded nor
// listed, once every provider has been asked.
func (d *differ) forgetMailboxes() {
	if len(d.obs.Unreachable) > 0 {
		return
	}
	for _, inv := range d.obs.Inventories {
		if len(inv.Unlisted) > 0 {
			return
		}
	}
	var left []string
	for name := range d.obs.Assignments {
		if d.isLeft(name) {
			left = append(left, name)
		}
	}
	for name := range d.obs.Hosts {
		if _, assigned := d.obs.Assignments[name]; !assigned && d.isLeft(name) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	for _, name := range left {
		d.forget(name, schema.Address{})
	}
}

// isLeft reports whether the mailbox of a slice is all that is left of it. One
// that another stack's mark is on is what that stack can be rebuilt from.
func (d *differ) isLeft(name string) bool {
	if d.next.Slices[name] != nil || d.slices[name] != nil || d.isDisowned(name) {
		return false
	}
	if _, damaged := d.obs.Damaged[name]; damaged {
		return false
	}
	mark := d.obs.Assignments[name].Stack
	return mark == "" || mark == d.stack
}

func (d *differ) hasMailbox(name string) bool {
	_, assigned := d.obs.Assignments[name]
	return assigned || len(d.obs.Hosts[name]) > 0
}

func (d *differ) forget(name string, owner schema.Address) {
	d.act(Action{Verb: ForgetSlice, Addr: owner, Slice: schema.SliceSpec{Name: name}, AfterSave: true})
}
