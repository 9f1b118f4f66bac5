package capacity

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// PoolStatus is how a reservation stands.
type PoolStatus struct {
	Addr schema.Address  `json:"address"`
	Min  schema.Capacity `json:"min"`
	Max  schema.Capacity `json:"max"`
	// Allocated counts its slices that are up, Pending those that are asked for
	// and not up yet, Free those of the allocated that no job holds.
	Allocated int `json:"allocated"`
	Pending   int `json:"pending"`
	Free      int `json:"free"`
	// Slices are those that it has or waits for, by name.
	Slices []PoolSliceStatus `json:"slices,omitempty"`
	// Jobs are those that hold some, in address order.
	Jobs []schema.Address `json:"jobs,omitempty"`
	// ExpiresAt is when it ends, zero if never; Expired says that it has.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Expired   bool      `json:"expired,omitempty"`
	// Reasons are what it waits for.
	Reasons []string `json:"reasons,omitempty"`
}

// PoolSliceStatus is one slice of a reservation.
type PoolSliceStatus struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
	// Jobs are those that hold it, or live on a part of it, in address order.
	Jobs      []schema.Address `json:"jobs,omitempty"`
	IdleSince time.Time        `json:"idle_since,omitzero"` // zero while a job does
}

// ReservationStatus is how the reservations of a configuration stand after a plan
// was made for it, in its order.
func ReservationStatus(desired *schema.Desired, p *plan.Plan, now time.Time) []PoolStatus {
	if len(desired.Reservations) == 0 {
		return nil
	}
	holders := HoldersIn(p.Next)
	owned := map[schema.Address][]string{}
	for name, s := range p.Next.Slices {
		if s.Spec.Owner.Kind == schema.KindReservation {
			owned[s.Spec.Owner] = append(owned[s.Spec.Owner], name)
		}
	}
	found := make([]PoolStatus, 0, len(desired.Reservations))
	for i := range desired.Reservations {
		r := &desired.Reservations[i]
		status := PoolStatus{Addr: r.Addr, Min: r.Min, Max: r.Max}
		status.ExpiresAt = expiryOf(r, p.Next.Resources[r.Addr], now)
		status.Expired = isOver(status.ExpiresAt, now)
		names := owned[r.Addr]
		slices.Sort(names)
		for _, name := range names {
			status.count(p.Next.Slices[name], holders[name])
		}
		slices.SortFunc(status.Jobs, schema.Address.Compare)
		status.Jobs = slices.Compact(status.Jobs)
		for _, w := range p.Pending {
			if w.Addr == r.Addr {
				status.Reasons = w.Reasons
			}
		}
		found = append(found, status)
	}
	return found
}

// count takes in a slice of the reservation. What is to be deleted is no part of
// it any more; a job that holds it still does.
func (p *PoolStatus) count(s *state.Slice, holders []schema.Address) {
	p.Jobs = append(p.Jobs, holders...)
	up := !s.UpAt.IsZero() && s.Listed
	switch {
	case !s.Terminating.IsZero():
		return
	case up:
		p.Allocated++
		if len(holders) == 0 {
			p.Free++
		}
	case s.PendingSince.IsZero():
	default:
		p.Pending++
	}
	p.Slices = append(p.Slices, PoolSliceStatus{Name: s.Spec.Name, Up: up, Jobs: holders, IdleSince: s.IdleSince})
}

// HoldersIn are the jobs that hold slices or have packed tasks on them, by the names
// of these, each in address order.
func HoldersIn(doc *state.Document) map[string][]schema.Address {
	holders := make(map[string][]schema.Address, len(doc.Slices))
	for addr, j := range doc.Jobs {
		for _, name := range slices.Concat(j.Slices, j.Staged) {
			holders[name] = append(holders[name], addr)
			if s := doc.Slices[name]; s != nil && s.Spec.On != "" {
				holders[s.Spec.On] = append(holders[s.Spec.On], addr)
			}
		}
	}
	for name, jobs := range holders {
		slices.SortFunc(jobs, schema.Address.Compare)
		holders[name] = slices.Compact(jobs)
	}
	return holders
}

// expiryOf is when a reservation ends, zero if it has no end. Its time begins
// when it was made or changed, now if that is not recorded yet.
func expiryOf(r *schema.Reservation, recorded state.Resource, now time.Time) time.Time {
	if r.TTL <= 0 {
		return time.Time{}
	}
	since := recorded.Since
	if since.IsZero() {
		since = now
	}
	return since.Add(time.Duration(r.TTL))
}

// isOver reports whether something that ends at a time, if ever, has ended.
func isOver(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
