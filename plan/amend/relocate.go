package amend

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// relocation follows the addresses of a document through statements, one after
// the other.
type relocation struct {
	doc     *state.Document
	desired map[schema.Address]bool
	// places are the addresses of the document by where they have come to:
	// several where one is recorded and another only desired.
	places   map[schema.Address][]schema.Address
	families map[schema.Address][]schema.Address // places that were or are taken, by base
}

func newRelocation(doc *state.Document) *relocation {
	r := &relocation{
		doc: doc, desired: declared(&doc.Desired),
		places: map[schema.Address][]schema.Address{}, families: map[schema.Address][]schema.Address{},
	}
	for a := range doc.Jobs {
		r.put(a, a)
	}
	for a := range doc.Resources {
		r.put(a, a)
	}
	for a := range r.desired {
		if len(r.places[a]) == 0 {
			r.put(a, a)
		}
	}
	return r
}

func (r *relocation) put(place schema.Address, origins ...schema.Address) {
	if len(r.places[place]) == 0 {
		r.families[place.Base()] = append(r.families[place.Base()], place)
	}
	r.places[place] = append(r.places[place], origins...)
}

// matched are the places that a statement moves, in order.
func (r *relocation) matched(s *statement) []schema.Address {
	var found []schema.Address
	switch {
	case s.from.IsModule() || s.from.Kind == schema.KindJobGroup:
		for place := range r.places {
			if _, moves := s.rename(place); moves {
				found = append(found, place)
			}
		}
	case s.whole:
		for _, place := range r.families[s.from] {
			if len(r.places[place]) > 0 {
				found = append(found, place)
			}
		}
	case len(r.places[s.from]) > 0:
		found = append(found, s.from)
	}
	slices.SortFunc(found, schema.Address.Compare)
	return slices.Compact(found)
}

// conflict is a place that cannot become another one, which is taken.
type conflict struct{ place, target schema.Address }

// carryOut moves what a statement names, all at once, and returns how much that
// was and what stays where it is because its new place is taken.
func (r *relocation) carryOut(s *statement) (moved int, stays []conflict) {
	matched := r.matched(s)
	leaves := map[schema.Address]bool{}
	for _, place := range matched {
		leaves[place] = true
	}
	for again := true; again; {
		again = false
		for _, place := range matched {
			target, _ := s.rename(place)
			if leaves[place] && !leaves[target] && r.isTaken(place, target) {
				leaves[place], again = false, true
				stays = append(stays, conflict{place, target})
			}
		}
	}
	origins := map[schema.Address][]schema.Address{}
	for _, place := range matched {
		if leaves[place] {
			origins[place] = r.places[place]
			delete(r.places, place)
		}
	}
	for place, from := range origins {
		target, _ := s.rename(place)
		r.put(target, from...)
	}
	return len(origins), stays
}

// isTaken reports whether something else has the target's place. What is
// desired there is no obstacle for what is desired nowhere else: the files were
// changed and accepted before the state was.
func (r *relocation) isTaken(place, target schema.Address) bool {
	isDesired := func(origin schema.Address) bool { return r.desired[origin] }
	return slices.ContainsFunc(r.places[target], r.isRecorded) ||
		slices.ContainsFunc(r.places[place], isDesired) && slices.ContainsFunc(r.places[target], isDesired)
}

func (r *relocation) isRecorded(origin schema.Address) bool {
	_, job := r.doc.Jobs[origin]
	_, resource := r.doc.Resources[origin]
	return job || resource
}

// result is where everything has gone that is not where it was.
func (r *relocation) result() map[schema.Address]schema.Address {
	gone := map[schema.Address]schema.Address{}
	for place, origins := range r.places {
		for _, origin := range origins {
			if origin != place {
				gone[origin] = place
			}
		}
	}
	return gone
}

// declared is every address of a configuration.
func declared(d *schema.Desired) map[schema.Address]bool {
	addrs := map[schema.Address]bool{}
	for i := range d.Namespaces {
		addrs[d.Namespaces[i].Addr] = true
	}
	for i := range d.Reservations {
		addrs[d.Reservations[i].Addr] = true
	}
	for i := range d.Groups {
		addrs[d.Groups[i].Addr] = true
	}
	for i := range d.Jobs {
		addrs[d.Jobs[i].Addr] = true
	}
	for i := range d.Notifications {
		addrs[d.Notifications[i].Addr] = true
	}
	return addrs
}
