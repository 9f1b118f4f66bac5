package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
)

// ReservationRow is one reservation.
type ReservationRow struct {
	Address     schema.Address `json:"address"`
	Name        string         `json:"name"`
	Namespace   string         `json:"namespace,omitempty"`
	Shape       string         `json:"shape"`
	Min         int            `json:"min"` // slices
	Max         int            `json:"max"`
	Allocated   int            `json:"allocated"` // up
	Pending     int            `json:"pending"`   // asked for
	Free        int            `json:"free"`      // of the allocated
	Priority    int            `json:"priority"`
	Preemptible bool           `json:"preemptible"`
	Growth      schema.Growth  `json:"growth"`
	ExpiresAt   time.Time      `json:"expires_at,omitzero"`
	Expired     bool           `json:"expired,omitempty"`
	Released    time.Time      `json:"released_at,omitzero"`
	Launched    bool           `json:"launched"`
	Jobs        []JobRef       `json:"jobs"`
	Reasons     []string       `json:"reasons,omitempty"` // what it waits for
	Slices      []string       `json:"slices"`
}

// JobRef names a job.
type JobRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ReservationList is the answer of /api/v1/reservations.
type ReservationList struct {
	Version      uint64           `json:"version"`
	Now          time.Time        `json:"now"`
	Reservations []ReservationRow `json:"reservations"`
}

func (s *Server) reservations(w http.ResponseWriter, _ *http.Request) {
	f := s.current.Load()
	out := ReservationList{Version: f.version, Now: s.cfg.Now(), Reservations: []ReservationRow{}}
	wanted := wantedOf(f.snap)
	for i, status := range capacity.ReservationStatus(wanted, planOf(f.snap), out.Now) {
		out.Reservations = append(out.Reservations, f.look().reservationRow(f.snap, &wanted.Reservations[i], status))
	}
	answer(w, http.StatusOK, out)
}

func (x *index) reservationRow(snap *Snapshot, r *schema.Reservation, status capacity.PoolStatus) ReservationRow {
	shape := r.Max
	if shape.TPU == "" && shape.GPU.Count == 0 && shape.CPU == 0 {
		shape = r.Min
	}
	row := ReservationRow{
		Address: r.Addr, Name: r.Addr.Scoped(), Namespace: r.Namespace, Shape: shapeOf(&schema.SliceSpec{TPU: shape.TPU, GPU: shape.GPU, CPU: shape.CPU, Memory: shape.Memory}),
		Min: r.Min.Slices, Max: r.Max.Slices, Allocated: status.Allocated, Pending: status.Pending, Free: status.Free,
		Priority: r.Priority, Preemptible: r.Preemptible, Growth: r.Growth, ExpiresAt: status.ExpiresAt, Expired: status.Expired,
		Reasons: status.Reasons, Jobs: []JobRef{}, Slices: []string{},
	}
	if row.Growth == "" {
		row.Growth = schema.GrowthDemand
	}
	if launch := snap.Doc.Resources[r.Addr].Launch; launch != nil {
		row.Launched, row.Released = true, launch.ReleasedAt
	}
	for _, slice := range status.Slices {
		row.Slices = append(row.Slices, slice.Name)
		e := x.holders[slice.Name]
		if e == nil {
			continue
		}
		if ref := (JobRef{ID: e.job.ID, Name: e.row.Name}); !slices.Contains(row.Jobs, ref) {
			row.Jobs = append(row.Jobs, ref)
		}
	}
	return row
}
