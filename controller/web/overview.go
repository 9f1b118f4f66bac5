package web

import (
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Overview is the answer of /api/v1/overview, and what /api/v1/updates sends.
type Overview struct {
	Version  uint64    `json:"version"` // rises when there is something else to see than the time
	Now      time.Time `json:"now"`
	Stack    string    `json:"stack"`
	Place    string    `json:"place,omitempty"`    // of its state: the name of its directory or bucket, and the workspace
	Location string    `json:"location,omitempty"` // the same in full
	Fray     string    `json:"fray"`               // its version
	Revision uint64    `json:"revision"`
	Serial   uint64    `json:"serial"`

	Leadership
	Totals

	Paused      *state.Pause      `json:"paused,omitempty"`
	Unreachable map[string]string `json:"unreachable,omitempty"` // providers, and why
	// Conditions are which providers are not seen whole, since when and why.
	Conditions map[schema.ProviderName]state.ProviderCondition `json:"conditions,omitempty"`
	Attention  []JobRow                                        `json:"attention"` // some jobs that failed or wait for others than the loop
}

// Leadership is who leads, and its last step.
type Leadership struct {
	Leads  bool      `json:"leads"`
	Leader string    `json:"leader"` // user@host (pid)
	Epoch  uint64    `json:"epoch"`
	Since  time.Time `json:"since,omitzero"` // it leads
	StepAt time.Time `json:"step_at,omitzero"`
	Took   float64   `json:"step_seconds"`
}

// Totals are the jobs and the slices of the stack, counted.
type Totals struct {
	Jobs    map[schema.JobStatus]int `json:"jobs"`
	Ready   int                      `json:"ready"` // of the running jobs
	Pending int                      `json:"pending"`
	Blocked int                      `json:"blocked"`
	Waits   map[plan.WaitKind]int    `json:"waits"` // of the pending jobs, by what for
	Slices  map[Phase]int            `json:"slices"`
	Idle    int                      `json:"idle"` // slices that no job holds
	Hosts   int                      `json:"hosts"`
	// Chips are those of slices that are up, ChipsHeld of them those of jobs.
	Chips     int `json:"chips"`
	ChipsHeld int `json:"chips_held"`
	// Cost is what an hour of what is there is estimated to cost, in dollars.
	Cost        accelerators.Price `json:"cost"`
	CostUnknown int                `json:"cost_unknown"` // slices whose price is not known
}

// maxAttention is how many jobs an overview names.
const maxAttention = 12

func (s *Server) overview(w http.ResponseWriter, _ *http.Request) {
	f := s.current.Load()
	out := s.overviewOf(f)
	out.Attention = f.look().attention()
	answer(w, http.StatusOK, out)
}

// overviewOf sums a frame up, once for all who watch.
func (s *Server) overviewOf(f *frame) Overview {
	x := f.look()
	f.summed.Do(func() {
		began := time.Now()
		f.sum = summary(f, x)
		f.took.Add(int64(time.Since(began)))
	})
	out := f.sum
	out.Now, out.Fray = s.cfg.Now(), s.cfg.Version
	out.Place, out.Location = placeOf(s.cfg.Location), s.cfg.Location
	return out
}

// placeOf names a location as people do: by the directory of the files, or the bucket,
// and by the workspace unless it is the default one.
func placeOf(location string) string {
	at, workspace, named := strings.Cut(filepath.ToSlash(location), "/workspaces/")
	if bucket, ok := strings.CutPrefix(at, "gs://"); ok {
		at = bucket
	} else {
		at = path.Base(strings.TrimSuffix(at, "/.fray"))
	}
	switch {
	case location == "":
		return ""
	case named:
		return at + ", workspace " + workspace
	}
	return at
}

func summary(f *frame, x *index) Overview {
	snap := f.snap
	out := Overview{
		Version: f.version, Stack: snap.Doc.Stack(),
		Revision: snap.Doc.Revision, Serial: snap.Doc.Serial,
		Leadership: Leadership{
			Leads: snap.Leads, Leader: leaderOf(snap), Epoch: snap.Lease.Epoch, Since: snap.Lease.AcquiredAt,
			StepAt: snap.At, Took: snap.Took.Seconds(),
		},
		Totals: Totals{Jobs: map[schema.JobStatus]int{}, Waits: map[plan.WaitKind]int{}, Slices: map[Phase]int{}},
		Paused: snap.Doc.Paused, Unreachable: map[string]string{}, Conditions: snap.Doc.Conditions,
	}
	for provider, why := range snap.Unreachable {
		out.Unreachable[string(provider)] = why.Text
	}
	for _, e := range x.jobs {
		out.Jobs[e.job.Status]++
		if e.job.Status == schema.JobRunning && e.job.Ready {
			out.Ready++
		}
		if !e.past && !e.job.Status.Ended() {
			if p := x.pending[e.addr]; p != nil {
				out.Pending++
				out.Waits[p.Kind]++
				if p.Blocked {
					out.Blocked++
				}
			}
		}
	}
	for name, slice := range snap.Doc.Slices {
		phase, _ := phaseOf(slice, x.listed[name])
		out.Slices[phase]++
		if phase != PhaseReady {
			continue
		}
		chips := accelerators.Chips(&slice.Spec)
		out.Chips += chips
		if slice.Spec.On == "" {
			out.Hosts += max(1, slice.Spec.Hosts)
		}
		if x.holders[name] != nil {
			out.ChipsHeld += chips
		} else {
			out.Idle++
		}
	}
	total := costOf(snap)
	out.Cost, out.CostUnknown = total.Before, total.UnknownBefore
	return out
}

func leaderOf(snap *Snapshot) string {
	l := snap.Lease
	if l.Host == "" {
		return ""
	}
	return l.User + "@" + l.Host
}

// costOf is what the slices that are there cost. Where no inventory is at hand
// they are those that one has listed before.
func costOf(snap *Snapshot) change.CostTotal {
	inventories := snap.Inventories
	if inventories == nil {
		var inv schema.Inventory
		for _, slice := range snap.Doc.Slices {
			if slice.Listed && !slice.Preempted && slice.Spec.On == "" {
				inv.Slices = append(inv.Slices, schema.SliceStatus{Spec: slice.Spec, Phase: schema.SliceReady})
			}
		}
		inventories = map[schema.ProviderName]schema.Inventory{"": inv}
	}
	// Only what is there now: what is wanted would be looked for in every zone.
	there := &schema.Desired{Providers: wantedOf(snap).Providers}
	return change.Total(change.Costs(there, planOf(snap), &plan.Observed{Inventories: inventories}))
}

// planOf is the plan with the state that it led to.
func planOf(snap *Snapshot) *plan.Plan {
	return &plan.Plan{Next: snap.Doc, Pending: pendingOf(snap)}
}

func wantedOf(snap *Snapshot) *schema.Desired {
	if snap.Wanted != nil {
		return snap.Wanted
	}
	return &snap.Doc.Desired
}

// attention are the jobs that may need a person: what failed, what
// is blocked, then what waits longest.
func (x *index) attention() []JobRow {
	var rows []JobRow
	for _, e := range x.jobs {
		p := x.pending[e.addr]
		waits := !e.job.Status.Ended() && p != nil && !p.Underway
		if !e.past && (e.job.Status == schema.JobFailed || waits) {
			rows = append(rows, *e.row)
		}
	}
	rank := func(r *JobRow) int {
		switch {
		case r.Status == schema.JobFailed:
			return 0
		case r.Blocked:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(rows, func(a, b JobRow) int {
		if d := rank(&a) - rank(&b); d != 0 {
			return d
		}
		if rank(&a) == 0 { // the newest failure first
			return b.EndedAt.Compare(a.EndedAt)
		}
		return a.AdmittedAt.Compare(b.AdmittedAt)
	})
	// Many failures must not hide what waits, nor the other way round.
	failed := slices.IndexFunc(rows, func(r JobRow) bool { return r.Status != schema.JobFailed })
	if failed < 0 {
		failed = len(rows)
	}
	others := len(rows) - failed
	shown := min(failed, max(maxAttention/2, maxAttention-others))
	named := append([]JobRow{}, rows[:shown]...) // never nil, which would be null to the page
	return append(named, rows[failed:failed+min(others, maxAttention-shown)]...)
}
