package snapshot

import (
	"github.com/fray-ml/fray/schema"
)

// Occupant is a unit that has a part of a reservation, or some of its slices.
type Occupant struct {
	Unit   schema.Address
	Finite bool // it ends some day
	Victim bool // it ends in what is being tried
}

// Stay is a packed task on a host.
type Stay struct {
	By    *Occupant
	Share Share
}

// Staying are the occupants of a part of a host, or all of it, and which of them go
// by what is going on.
type Staying struct {
	Packed []Stay
	Goes   []Stay
	Whole  *Occupant // who has the slice, nil if no unit has or it goes
}

// NoteWhole takes note of who has a slice as a whole now, nil for none: what was
// found out before would give it to another unit too.
func (p *Pool) NoteWhole(name string, by *Occupant) {
	for _, r := range p.Rooms {
		if r.Host.Name == name {
			r.Stays.Whole = by
		}
	}
}

// tried is what was found out about a reservation in this Diff, by what was asked
// for, so that many who ask for the same are not tried one by one.
type tried struct {
	Tight      map[string]bool // there will be no room
	Late       map[string]bool // nor some day, beside what is kept by now
	Comes      map[string]bool // whether there will be some day
	Infeasible map[string]int  // the highest of the bands that cannot make any
}
