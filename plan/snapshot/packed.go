package snapshot

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// notePacked notes where a recorded packed slice is placed.
func (d *Draft) notePacked(spec *schema.SliceSpec) {
	d.own()
	if d.Packed == nil {
		d.Packed = map[string][]string{}
	}
	if n, noted := slices.BinarySearch(d.Packed[spec.On], spec.Name); !noted {
		d.Packed[spec.On] = slices.Insert(d.Packed[spec.On], n, spec.Name)
	}
}

// dropPacked notes that a packed slice is recorded no more.
func (d *Draft) dropPacked(spec *schema.SliceSpec) {
	d.own()
	if n, noted := slices.BinarySearch(d.Packed[spec.On], spec.Name); noted {
		d.Packed[spec.On] = slices.Delete(d.Packed[spec.On], n, n+1)
	}
	if host := d.Next.Slices[spec.On]; host != nil {
		if p := d.Pooled[host.Spec.Owner.Scoped()]; p != nil { // one has more room now
			p.Rooms, p.Full = nil, nil
		}
	}
}

// PackedOn is the owner of a packed task that a slice has, if it has one: until the last
// is gone, no other job can have the slice.
func (d *Draft) PackedOn(name string) (schema.Address, bool) {
	for _, packed := range d.Packed[name] {
		if s := d.Next.Slices[packed]; s != nil {
			return s.Spec.Owner, true
		}
	}
	return schema.Address{}, false
}
