package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
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
	// Cells are its slices, of a zone that has no more of them than were asked for.
	Cells []SliceCell `json:"cells,omitempty"`
}

// SliceCell is a slice in a picture of many.
type SliceCell struct {
	Name   string `json:"name"`
	Phase  Phase  `json:"phase"`
	Idle   bool   `json:"idle,omitempty"`
	Notice bool   `json:"notice,omitempty"` // of preemption or maintenance
	About  string `json:"about"`            // for people
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
	Total      int             `json:"total"`
	Matched    int             `json:"matched"` // of them, those that were asked for
	Offset     int             `json:"offset"`
	Zones      []ZoneRow       `json:"zones"`            // of all slices
	Slices     []SliceRow      `json:"slices,omitempty"` // by provider, zone and name; without summary=true
	ZoneHealth []ZoneHealthRow `json:"zone_health"`
}

// sliceQuery is what a list is asked for.
type sliceQuery struct {
	words   []string // each in the name, place, type, phase, holder or reason; lower case
	summary bool     // no list
	// cells is how many slices a zone may have whose cells are asked for; 0: none.
	cells         int
	offset, limit int // limit 0: all
}

func readSliceQuery(v url.Values) (sliceQuery, string) {
	q := sliceQuery{words: strings.Fields(strings.ToLower(v.Get("q"))), summary: v.Get("summary") == "true"}
	wrong := readNumbers(v, map[string]*int{"offset": &q.offset, "limit": &q.limit, "cells": &q.cells})
	if q.limit > 0 {
		q.limit = min(q.limit, maxRows)
	}
	return q, wrong
}

func (q *sliceQuery) matches(r *SliceRow) bool {
	if len(q.words) == 0 {
		return true
	}
	words := []string{r.Name, string(r.Provider), r.Zone, r.Shape, string(r.Phase), r.HolderName, r.Owner.String(), r.Reason}
	if r.Idle {
		words = append(words, "idle")
	}
	if r.Notice != "" {
		words = append(words, "notice")
	}
	text := strings.ToLower(strings.Join(words, "\n"))
	return !slices.ContainsFunc(q.words, func(w string) bool { return !strings.Contains(text, w) })
}

func (s *Server) slices(w http.ResponseWriter, r *http.Request) {
	q, wrong := readSliceQuery(r.URL.Query())
	if wrong != "" {
		fail(w, http.StatusBadRequest, wrong)
		return
	}
	f := s.current.Load()
	all, zones := f.sliceList()
	out := SliceList{Version: f.version, Now: s.cfg.Now(), Total: len(all), Offset: q.offset, Zones: zones, ZoneHealth: []ZoneHealthRow{}}
	if q.cells > 0 {
		out.Zones = withCells(zones, all, q.cells)
	}
	out.list(all, &q)
	for _, place := range slices.Sorted(maps.Keys(f.snap.Doc.ZoneHealth)) {
		x := f.snap.Doc.ZoneHealth[place]
		if x.Until.After(out.Now) {
			out.ZoneHealth = append(out.ZoneHealth, ZoneHealthRow{Place: place, Kind: x.Kind, Reason: x.Reason, Failures: x.Failures, Until: x.Until})
		}
	}
	answer(w, http.StatusOK, out)
}

// list adds the slices that are asked for.
func (l *SliceList) list(all []SliceRow, q *sliceQuery) {
	if q.summary {
		l.Matched = len(all)
		return
	}
	for i := range all {
		if !q.matches(&all[i]) {
			continue
		}
		if l.Matched >= q.offset && (q.limit == 0 || len(l.Slices) < q.limit) {
			l.Slices = append(l.Slices, all[i])
		}
		l.Matched++
	}
}

// sliceList are the slices and zones of a frame, listed once for all who ask.
func (f *frame) sliceList() ([]SliceRow, []ZoneRow) {
	f.listed.Do(func() {
		f.slices = f.look().sliceRows(f.snap)
		l := SliceList{Zones: []ZoneRow{}}
		for i := range f.slices {
			l.count(f.snap, &f.slices[i])
		}
		f.zones = l.Zones
	})
	return f.slices, f.zones
}

// manyCells is how many cells a page draws.
const manyCells = 2000

// withCells are zones, those with few slices with a cell for each. rows come by zone, as the zones do.
func withCells(zones []ZoneRow, rows []SliceRow, most int) []ZoneRow {
	out, left := slices.Clone(zones), manyCells
	for i := range out {
		z := &out[i]
		in := rows[:z.Slices]
		if rows = rows[z.Slices:]; z.Slices > min(most, left) {
			continue
		}
		left -= z.Slices
		for k := range in {
			z.Cells = append(z.Cells, cellOf(&in[k]))
		}
	}
	return out
}

func cellOf(r *SliceRow) SliceCell {
	c := SliceCell{Name: r.Name, Phase: r.Phase, Idle: r.Idle, Notice: r.Notice != ""}
	look := string(r.Phase)
	if r.Idle {
		look = "idle"
	}
	parts := []string{r.Name, look, r.Shape}
	if r.HolderName != "" {
		parts = append(parts, "held by "+r.HolderName)
	}
	if r.Notice != "" {
		parts = append(parts, "notice: "+r.Notice)
	}
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	c.About = strings.Join(parts, " · ")
	return c
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
