package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

// A reservation holds as many slices as its min says, those that jobs hold among
// them. It grows when a job that waits for it can be given what it needs by that,
// never beyond its max, in which everything counts that is there, is asked for, or
// is going: the job is given the new slices at once and brings them up. What is
// more than the min and idles for long enough is released, the highest index first.

// Pool is a declared reservation while a Diff looks at it.
type Pool struct {
	Of    *schema.Reservation
	Specs []schema.SliceSpec // those to keep, in index order
	Free  []string           // those that no job holds, the ones that are up first
	Bound Bounds
	Room  int          // how many more there may be
	Going int          // how many more than that there may be once those have gone that go and that no job holds
	Used  map[int]bool // indices that are not to be given to new slices
	// Unrecorded are slices of it that are listed and in no record, by index; see moreOf.
	Unrecorded []schema.SliceSpec

	Users string // who holds the others, "" before it was asked

	Rooms    []*FreeHost // see roomsOf
	RoomsOf  int         // how many specs there were then
	Full     []FullFor   // for what no room is left
	Reserved keptRooms   // for units ahead in the queue
	Stays    bool        // its rooms know who stays, see findStays
	// Who these are, by unit.
	Occupants map[schema.Address]*Occupant
	Tried     tried
}

// copied is the pool for another stage, which finds the rooms on its hosts anew.
func (p *Pool) copied() *Pool {
	return &Pool{
		Of: p.Of, Specs: slices.Clone(p.Specs), Free: slices.Clone(p.Free), Bound: p.Bound,
		Room: p.Room, Going: p.Going, Used: maps.Clone(p.Used), Unrecorded: p.Unrecorded,
	}
}

// Bounds are how many slices a reservation has at least and at most.
type Bounds struct {
	Floor, Most int
	Over        time.Time // when it ended, zero if it has not
}

// HasExpired says that a reservation's time is over.
func (p *Pool) HasExpired(addr schema.Address) string {
	return fmt.Sprintf("%s has expired: its ttl of %s was over at %s", addr, p.Of.TTL, p.Bound.Over.UTC().Format(time.RFC3339))
}
