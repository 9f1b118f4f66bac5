package capacity

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// keep takes what a layout says.
func (f *Fitting) keep(by schema.Address, l *Layout) {
	p := f.Pool
	for _, name := range l.whole {
		if p.Reserved.Whole == nil {
			p.Reserved.Whole = map[string]schema.Address{}
		}
		p.Reserved.Whole[name] = by
	}
	for _, t := range l.rooms {
		if t.room.Grown {
			continue
		}
		host := t.room.Host.Name
		p.Reserved.Rooms = append(p.Reserved.Rooms, snapshot.ReservedRoom{Slice: host, N: t.room.N, Share: *t.share, By: by, Room: p.RoomAt(host, t.room.N)})
		if k := &p.Reserved.Rooms[len(p.Reserved.Rooms)-1]; k.Room != nil && !p.Reserved.Off {
			k.Take(1)
		}
		if slices.Contains(p.Free, host) && !slices.Contains(p.Reserved.Free, host) {
			p.Reserved.Free = append(p.Reserved.Free, host)
		}
	}
	p.Reserved.Grown += l.grown
	if !p.Reserved.Off {
		p.Free = without(p.Free, p.Reserved.Free)
		p.Room -= l.grown
	}
}

// without are the names of a list that are not in another.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// isKeptWhole reports whether a room's slice is kept for one who draws it as such.
func (d *HostCapacity) isKeptWhole(r *snapshot.FreeHost) bool {
	p := d.Pooled[r.Host.Owner.Scoped()]
	if p == nil || p.Reserved.Off {
		return false
	}
	_, kept := p.Reserved.Whole[r.Host.Name]
	return kept
}

// keptFrom says for whom room is kept that a share would fit into, zero if it does
// not for another reason.
func (d *HostCapacity) keptFrom(p *snapshot.Pool, r *snapshot.FreeHost, s *snapshot.Share) schema.Address {
	if d.isKeptWhole(r) {
		return p.Reserved.Whole[r.Host.Name]
	}
	if r.Reserved.IsZero() || r.Lacks(s).None() {
		return schema.Address{}
	}
	was := *r
	was.Ports = maps.Clone(r.Ports)
	for i := range p.Reserved.Rooms {
		if k := &p.Reserved.Rooms[i]; k.Room == r {
			was.Take(&k.Share, -1)
		}
	}
	if was.Lacks(s).None() {
		return r.Reserved
	}
	return schema.Address{}
}

// layNearest is lay for a day that may be far: it picks those hosts that lack the
// least of what is asked for now.
func (f *Fitting) layNearest(ends func(*snapshot.Occupant) bool) (Layout, bool) {
	if _, ok := f.Lay(ends); !ok {
		return Layout{}, false
	}
	now, some := f.emptied(staysOn), f.emptied(ends)
	l := Layout{whole: f.nearestWhole(now, some)}
	for _, want := range f.jobs {
		need := shareOf(&want.Resources)
		for range want.Resources.Slices {
			best := -1
			for i, r := range some {
				if !r.Busy && r.Lacks(&need).None() && (best < 0 || now[i].Missing(&need) < now[best].Missing(&need)) {
					best = i
				}
			}
			if best < 0 { // by another way there was: keeping less than all helps too
				break
			}
			f.take(some[best], &need, 1)
			f.take(now[best], &need, 1)
			l.rooms = append(l.rooms, placed{some[best], &need})
		}
	}
	return l, true
}

// nearestWhole picks slices that will be free, those first that the fewest others
// have a part of now.
func (f *Fitting) nearestWhole(now, some []*snapshot.FreeHost) []string {
	if f.whole == 0 {
		return nil
	}
	packed, never := map[string]int{}, map[string]bool{}
	var names []string
	for i, r := range some {
		name := r.Host.Name
		if r.N == 0 {
			names = append(names, name)
		}
		packed[name] += now[i].Packed
		if now[i].Busy {
			packed[name]++
		}
		never[name] = never[name] || r.Busy || r.Packed > 0
	}
	names = slices.DeleteFunc(names, func(name string) bool { return never[name] })
	slices.SortStableFunc(names, func(a, b string) int { return packed[a] - packed[b] })
	names = names[:min(f.whole, len(names))]
	for i, r := range some {
		if slices.Contains(names, r.Host.Name) {
			r.Busy, now[i].Busy = true, true
		}
	}
	return names
}
