package snapshot

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// EditSlice returns a copy of a slice's entry that may be changed.
func (d *Draft) EditSlice(name string) *state.Slice {
	cur := d.Next.Slices[name]
	if cur != d.base.Slices[name] {
		return cur // copied before
	}
	s := *cur
	d.MutableSlices()[name] = &s
	return &s
}

// passOn records another owner of a slice. Actions may have the spec that it had.
func passOn(d *Draft, name string, owner schema.Address, index int) *state.Slice {
	s := *d.Next.Slices[name]
	s.Spec.Owner, s.Spec.Index = owner, index
	d.MutableSlices()[name] = &s
	return &s
}

// PutSlice records a slice, in place of an entry of the same name.
func (d *Draft) PutSlice(s state.Slice) *state.Slice {
	d.DropSlice(s.Spec.Name)
	d.MutableSlices()[s.Spec.Name] = &s
	if s.Spec.On != "" {
		d.notePacked(&s.Spec)
	}
	if _, listed := d.Listed[s.Spec.Name]; !listed {
		d.Spend(s.Spec, 1)
	}
	return &s
}

// DropSlice forgets a slice.
func (d *Draft) DropSlice(name string) {
	s := d.Next.Slices[name]
	if s == nil {
		return
	}
	if _, listed := d.Listed[name]; !listed {
		d.Spend(s.Spec, -1)
	}
	if s.Spec.On != "" {
		d.dropPacked(&s.Spec)
	}
	d.withdraw(name)
	delete(d.MutableSlices(), name)
}

// withdraw takes the creation of a slice back that this plan was to begin: who
// had asked for it has been given up meanwhile, and its room may be another's.
func (d *Draft) withdraw(name string) {
	i, acting := d.Acting[name]
	if !acting || d.Plan.Actions[i].Verb != plan.CreateSlice {
		return
	}
	d.Plan.Actions = slices.Delete(d.MutableActions(), i, i+1)
	delete(d.Acting, name)
	for other, n := range d.Acting {
		if n > i {
			d.Acting[other] = n - 1
		}
	}
}

// RecordOf is the entry of a listed slice, made where there is none: the slice
// was created by a step that did not live to record it.
func (d *Draft) RecordOf(st *schema.SliceStatus) *state.Slice {
	if s := d.Next.Slices[st.Spec.Name]; s != nil {
		return s
	}
	return d.PutSlice(state.Slice{Spec: st.Spec, PendingSince: d.Now, Listed: true})
}

// TakeUp records that a slice is a job's, which may have been another's before.
func (d *Draft) TakeUp(spec *schema.SliceSpec) {
	s := d.Next.Slices[spec.Name]
	if s.IdleSince.IsZero() {
		return
	}
	passOn(d, spec.Name, spec.Owner, spec.Index).IdleSince = time.Time{}
	if st, listed := d.Listed[spec.Name]; listed {
		d.assumeOwner(st, spec.Owner, spec.Index)
	}
}
