package snapshot

import (
	"github.com/fray-ml/fray/schema"
)

// What people changed by hand (plan/amend) shows here: slices that bear the name
// of the owner they were made for although they belong to another one now, and
// slices that the stack has released.

// takeIn notes a listed slice as the state knows it. An unmanaged one only takes
// room.
func (d *Draft) takeIn(st *schema.SliceStatus) {
	name := st.Spec.Name
	if d.IsUnmanaged(name) {
		d.Unmanaged = append(d.Unmanaged, st)
		return
	}
	d.Listed[name] = st
	if s := d.Doc.Slices[name]; s != nil {
		d.assumeOwner(st, s.Spec.Owner, s.Spec.Index)
	}
}

// assumeOwner looks at a listed slice as one of another owner than the one that
// its provider has on record.
func (d *Draft) assumeOwner(st *schema.SliceStatus, owner schema.Address, index int) {
	if st.Spec.Owner == owner && st.Spec.Index == index {
		return
	}
	d.own()
	name := st.Spec.Name
	if d.made == nil {
		d.made = map[string]schema.SliceSpec{}
	}
	if _, noted := d.made[name]; !noted {
		d.made[name] = st.Spec
	}
	assumed := *st
	assumed.Spec.Owner, assumed.Spec.Index = owner, index
	d.Listed[name] = &assumed
}

// MadeAs is the spec of a listed slice as its provider has it on record.
func (d *Draft) MadeAs(spec schema.SliceSpec) schema.SliceSpec {
	if made, ok := d.made[spec.Name]; ok {
		return made
	}
	return spec
}

// IsUnmanaged reports whether the stack has released a slice.
func (d *Draft) IsUnmanaged(name string) bool {
	_, ok := d.Next.Unmanaged[name]
	return ok
}

// IsTaken reports whether another slice bears the name: one that was made for
// this owner and is another's now, or one that the stack has released.
func (d *Draft) IsTaken(spec *schema.SliceSpec) bool {
	s := d.Next.Slices[spec.Name]
	return s != nil && (s.Spec.Owner != spec.Owner || s.Spec.Index != spec.Index) || d.IsUnmanaged(spec.Name)
}
