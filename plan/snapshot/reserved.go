package snapshot

import (
	"github.com/fray-ml/fray/schema"
)

// Room on hosts is reserved for units ahead in the queue by taking it as if they had it, for
// the rest of one Diff; the next one finds out anew what is kept, and for whom.

// keptRooms are what is kept of a reservation.
type keptRooms struct {
	Rooms []ReservedRoom
	Whole map[string]schema.Address // slices, by who is to have them
	Free  []string                  // slices of which only reservations have a part
	// waiting is how many of those have some kept who wait for what ends some day.
	Waiting int
	Grown   int  // slices by which the reservation is to grow
	Off     bool // given back for a moment, see giveKept
}

// ReservedRoom is room on a host that is held for a job that waits.
type ReservedRoom struct {
	Slice string
	N     int // of its hosts
	Share Share
	By    schema.Address
	Room  *FreeHost // nil while it is not to be had
}

// Take takes room for n tasks.
func (k *ReservedRoom) Take(n int) {
	k.Room.Take(&k.Share, n)
	k.Room.Reserved = k.By
}

// RoomAt is that of a host, nil if it takes no packed tasks.
func (p *Pool) RoomAt(slice string, n int) *FreeHost {
	for _, r := range p.Rooms {
		if r.Host.Name == slice && r.N == n {
			return r
		}
	}
	return nil
}

// FindReserved takes what is kept of rooms that were just made.
func (p *Pool) FindReserved() {
	if len(p.Reserved.Rooms) == 0 {
		return
	}
	type host struct {
		slice string
		n     int
	}
	at := make(map[host]*FreeHost, len(p.Rooms))
	for _, r := range p.Rooms {
		at[host{r.Host.Name, r.N}] = r
	}
	for i := range p.Reserved.Rooms {
		k := &p.Reserved.Rooms[i]
		if k.Room = at[host{k.Slice, k.N}]; k.Room != nil && !p.Reserved.Off {
			k.Take(1)
		}
	}
}

func (k *keptRooms) Any() bool { return len(k.Rooms)+len(k.Whole)+k.Grown > 0 }

// TakeReserved takes n of the slices that are held.
func (p *Pool) TakeReserved(n int) {
	for i := range p.Reserved.Rooms {
		if k := &p.Reserved.Rooms[i]; p.Rooms != nil && k.Room != nil {
			k.Take(n)
		}
	}
}

// Missing is how much a room has too little of, as a part of what is asked for: 0,
// it fits; above 1, a port is taken.
func (r *FreeHost) Missing(s *Share) float64 {
	var most float64
	if r.Busy {
		most = 1
	}
	part := func(need, left float64) {
		if need > 0 && left < need {
			most = max(most, (need-left)/need)
		}
	}
	part(s.CPU, r.CPU)
	if !r.AnyMemory {
		part(float64(s.Memory), float64(r.Memory))
	}
	if !r.AnyDisk {
		part(float64(s.Disk), float64(r.Disk))
	}
	for _, port := range s.Ports {
		if r.Ports[port] > 0 {
			most++
		}
	}
	return most
}
