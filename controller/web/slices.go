package web

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Phase is how a slice stands, of a closed set.
type Phase string

// The phases, in the order of a slice's life.
const (
	PhaseWanted   Phase = "wanted" // not asked for yet
	PhaseQueued   Phase = "queued" // in the cloud's queue
	PhaseCreating Phase = "creating"
	PhaseReady    Phase = "ready" // all its hosts have reported in
	PhaseDead     Phase = "dead"
	PhaseDeleting Phase = "deleting"
)

// SliceRow is one slice.
type SliceRow struct {
	Name     string              `json:"name"`
	Provider schema.ProviderName `json:"provider"`
	Zone     string              `json:"zone,omitempty"`
	SliceMachines
	Phase  Phase       `json:"phase"`
	Reason string      `json:"reason,omitempty"`
	Cause  state.Cause `json:"cause,omitempty"` // why it is to be deleted; "": it is to stay
	SliceUse
	AskedAt   time.Time `json:"asked_at,omitzero"`
	BornAt    time.Time `json:"born_at,omitzero"`
	Idle      bool      `json:"idle"` // up, and no job holds it
	IdleSince time.Time `json:"idle_since,omitzero"`
	Notice    string    `json:"notice,omitempty"` // of preemption or maintenance
	On        string    `json:"on,omitempty"`     // the slice on one of whose hosts it lives
	OnHost    int       `json:"on_host,omitempty"`
}

// SliceMachines are the machines of a slice.
type SliceMachines struct {
	Shape       string `json:"shape"`
	Hosts       int    `json:"hosts"`
	Up          int    `json:"hosts_up"` // that report
	Chips       int    `json:"chips"`
	Preemptible bool   `json:"preemptible"`
}

// SliceUse is whom a slice serves.
type SliceUse struct {
	Owner      schema.Address `json:"owner"`            // it was made for
	Holder     string         `json:"holder,omitempty"` // id of the job that has it
	HolderName string         `json:"holder_name,omitempty"`
}

// ZoneRow sums up what is in one zone of a provider.
type ZoneRow struct {
	Provider schema.ProviderName `json:"provider"`
	Zone     string              `json:"zone,omitempty"`
	Slices   int                 `json:"slices"`
	Chips    int                 `json:"chips"`
	Phases   map[Phase]int       `json:"phases"`
	Idle     int                 `json:"idle"`
	Note     string              `json:"note,omitempty"` // why it cannot be asked
}

// ZoneHealthRow is a place where capacity was rejected.
type ZoneHealthRow struct {
	Place    string           `json:"place"`
	Kind     schema.ErrorKind `json:"kind"`
	Reason   string           `json:"reason"`
	Failures int              `json:"failures"`
	Until    time.Time        `json:"until"` // it is tried again
}

// SliceList is the answer of /api/v1/slices.
type SliceList struct {
	Version    uint64          `json:"version"`
	Now        time.Time       `json:"now"`
	Zones      []ZoneRow       `json:"zones"`
	Slices     []SliceRow      `json:"slices,omitempty"` // by provider, zone and name; without summary=true
	ZoneHealth []ZoneHealthRow `json:"zone_health"`
}

func (s *Server) slices(w http.ResponseWriter, r *http.Request) {
	f := s.current.Load()
	out := SliceList{Version: f.version, Now: s.cfg.Now(), Slices: f.look().sliceRows(f.snap), Zones: []ZoneRow{}, ZoneHealth: []ZoneHealthRow{}}
	for i := range out.Slices {
		out.count(f.snap, &out.Slices[i])
	}
	if r.URL.Query().Get("summary") == "true" {
		out.Slices = nil
	}
	for _, place := range slices.Sorted(maps.Keys(f.snap.Doc.ZoneHealth)) {
		x := f.snap.Doc.ZoneHealth[place]
		if x.Until.After(out.Now) {
			out.ZoneHealth = append(out.ZoneHealth, ZoneHealthRow{Place: place, Kind: x.Kind, Reason: x.Reason, Failures: x.Failures, Until: x.Until})
		}
	}
	answer(w, http.StatusOK, out)
}

// count adds a slice to its zone. Slices come by zone.
func (l *SliceList) count(snap *Snapshot, r *SliceRow) {
	n := len(l.Zones)
	if n == 0 || l.Zones[n-1].Provider != r.Provider || l.Zones[n-1].Zone != r.Zone {
		l.Zones = append(l.Zones, ZoneRow{Provider: r.Provider, Zone: r.Zone, Phases: map[Phase]int{}, Note: noteOf(snap, r)})
		n++
	}
	z := &l.Zones[n-1]
	z.Slices++
	z.Chips += r.Chips
	z.Phases[r.Phase]++
	if r.Idle {
		z.Idle++
	}
}

func noteOf(snap *Snapshot, r *SliceRow) string {
	return cmp.Or(snap.Unreachable[r.Provider].Text, snap.Inventories[r.Provider].Unlisted[r.Zone])
}

// Slices are all slices of a snapshot, by provider, zone and name.
func Slices(snap *Snapshot) []SliceRow { return newFrame(snap, 1).look().sliceRows(snap) }

func (x *index) sliceRows(snap *Snapshot) []SliceRow {
	rows := make([]SliceRow, 0, len(snap.Doc.Slices))
	for name, slice := range snap.Doc.Slices {
		rows = append(rows, x.sliceRow(snap, name, slice))
	}
	slices.SortFunc(rows, func(a, b SliceRow) int {
		return cmp.Or(strings.Compare(string(a.Provider), string(b.Provider)), strings.Compare(a.Zone, b.Zone), strings.Compare(a.Name, b.Name))
	})
	return rows
}

func (x *index) sliceRow(snap *Snapshot, name string, slice *state.Slice) SliceRow {
	spec := &slice.Spec
	row := SliceRow{
		Name: name, Provider: spec.Provider, Zone: spec.Zone,
		SliceMachines: SliceMachines{
			Shape: shapeOf(spec),
			Hosts: max(1, spec.Hosts), Chips: accelerators.Chips(spec), Preemptible: spec.Preemptible,
		},
		SliceUse: SliceUse{Owner: spec.Owner},
		AskedAt:  slice.PendingSince, BornAt: slice.UpAt, IdleSince: slice.IdleSince, On: spec.On, OnHost: spec.OnHost,
	}
	row.Phase, row.Reason = phaseOf(slice, x.listed[name])
	row.Cause = slice.Terminating.Cause
	for i := range snap.Hosts[name] {
		h := &snap.Hosts[name][i]
		if h.SilentFor(snap.Attended) < quietHost {
			row.Up++
		}
		row.Notice = cmp.Or(row.Notice, h.Notice)
	}
	if e := x.holders[name]; e != nil {
		row.Holder, row.HolderName = e.job.ID, e.row.Name
		row.IdleSince = time.Time{}
	}
	row.Idle = row.Phase == PhaseReady && row.Holder == ""
	return row
}

// phaseOf prefers what the provider listed; agents that have all reported make a
// slice ready though the cloud still says that it is being created.
func phaseOf(slice *state.Slice, listed *schema.SliceStatus) (Phase, string) {
	why := cmp.Or(slice.Terminating.Text, slice.Error)
	if listed != nil {
		why = cmp.Or(why, listed.Reason)
		switch listed.Phase {
		case schema.SliceDead:
			return PhaseDead, why
		case schema.SliceDeleting:
			return PhaseDeleting, why
		case schema.SliceCreating, schema.SliceReady:
		}
	}
	switch {
	case slice.Preempted:
		return PhaseDead, cmp.Or(why, "its machines were taken away")
	case !slice.Terminating.IsZero():
		return PhaseDeleting, why
	case !slice.UpAt.IsZero():
		return PhaseReady, why
	case slice.Queued:
		return PhaseQueued, why
	case slice.PendingSince.IsZero():
		return PhaseWanted, why
	}
	return PhaseCreating, why
}
