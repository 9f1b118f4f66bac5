package plan

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/schema"
)

// What people changed by hand (plan/amend) shows here: slices that bear the name
// of the owner they were made for although they belong to another one now, and
// slices that the stack has let go of.

// takeIn notes a listed slice as the state knows it. One that the stack has let
// go of only takes room.
func (d *differ) takeIn(st *schema.SliceStatus) {
	name := st.Spec.Name
	if d.isDisowned(name) {
		d.disowned = append(d.disowned, st)
		return
	}
	d.slices[name] = st
	if s := d.doc.Slices[name]; s != nil {
		d.assumeOwner(st, s.Spec.Owner, s.Spec.Index)
	}
}

// assumeOwner looks at a listed slice as one of another owner than the one that
// its provider has on record.
func (d *differ) assumeOwner(st *schema.SliceStatus, owner schema.Address, index int) {
	if st.Spec.Owner == owner && st.Spec.Index == index {
		return
	}
	name := st.Spec.Name
	if d.made == nil {
		d.made = map[string]schema.SliceSpec{}
	}
	if _, noted := d.made[name]; !noted {
		d.made[name] = st.Spec
	}
	assumed := *st
	assumed.Spec.Owner, assumed.Spec.Index = owner, index
	d.slices[name] = &assumed
}

// madeAs is the spec of a listed slice as its provider has it on record.
func (d *differ) madeAs(spec schema.SliceSpec) schema.SliceSpec {
	if made, ok := d.made[spec.Name]; ok {
		return made
	}
	return spec
}

func (d *differ) isDisowned(name string) bool {
	_, ok := d.next.Disowned[name]
	return ok
}

// isTaken reports whether another slice bears the name: one that was made for
// this owner and is another's now, or one that the stack has let go of.
func (d *differ) isTaken(spec *schema.SliceSpec) bool {
	s := d.next.Slices[spec.Name]
	return s != nil && (s.Spec.Owner != spec.Owner || s.Spec.Index != spec.Index) || d.isDisowned(spec.Name)
}

// freshSlices are the specs of the slices that a job without any is given: idle ones
// that do as well as new ones, then the first ones named after it whose names
// nobody else bears.
func (d *differ) freshSlices(want *schema.Job) []schema.SliceSpec {
	specs, used := d.warmSpecs(want, d.zones[want.Addr])
	for index := 0; len(specs) < want.Resources.Slices; index++ {
		if used[index] {
			continue
		}
		spec := d.ownSlice(want, index, d.zones[want.Addr])
		if !d.isTaken(&spec) && !d.isStuck(spec.Name) && !d.isKeptIdle(spec.Name) {
			specs = append(specs, spec)
		}
	}
	slices.SortFunc(specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
	return specs
}

// heldSlice is the spec of a slice that a job holds as its i-th; false if it is
// not there to be had any more.
func (d *differ) heldSlice(want *schema.Job, i int, name string) (schema.SliceSpec, bool) {
	s := d.next.Slices[name]
	if s == nil {
		spec := OwnSlice(d.stack, want, i)
		return spec, spec.Name == name && !d.isDisowned(name)
	}
	spec := d.ownSlice(want, i, s.Spec.Zone)
	spec.Name, spec.Index = name, s.Spec.Index
	spec.Cloud.Engine = cmp.Or(want.Resources.Cloud.Engine, s.Spec.Cloud.Engine) // what it was made by
	return spec, spec.Name == name && !d.isDisowned(name)
}

// poolMoves reports whether a slice of a reservation is to be had in another zone:
// it was refused where it is meant to be, or is not to be there any more.
func (d *differ) poolMoves(r *schema.Reservation, name string) bool {
	s := d.next.Slices[name]
	if s.Spec.Zone == "" || s.Spec.Provider != r.Provider {
		return false
	}
	if addr, held := d.heldBy(name); held && d.next.Jobs[addr] != nil && d.next.Jobs[addr].Running() {
		return false
	}
	if len(r.Zones)+len(r.Regions) > 0 && !slices.Contains(d.poolZones(r), s.Spec.Zone) {
		return true
	}
	if !d.isRefused(name) {
		return false
	}
	there := d.poolZone(r, s.Spec.Index)
	other := d.poolSlice(r, s.Spec.Index, there)
	return there != s.Spec.Zone && d.shut(&other).none()
}

// poolZone is the best zone for a slice of a reservation, the first where all are shut.
func (d *differ) poolZone(r *schema.Reservation, index int) string {
	zones := d.poolZones(r)
	for _, zone := range zones {
		if spec := d.poolSlice(r, index, zone); d.shut(&spec).none() {
			return zone
		}
	}
	if len(zones) == 0 {
		return ""
	}
	return zones[0]
}

// forgetDisowned drops slices that were let go of once they are gone: listed no
// more, and not about to be either.
func (d *differ) forgetDisowned() {
	if len(d.doc.Disowned) == 0 {
		return
	}
	listed := make(map[string]bool, len(d.disowned))
	for _, st := range d.disowned {
		listed[st.Spec.Name] = true
	}
	for name, s := range d.doc.Disowned {
		if !listed[name] && d.known(&s.Spec) && d.now.Sub(s.At) >= bootTimeout {
			delete(d.mutable().Disowned, name)
		}
	}
}
