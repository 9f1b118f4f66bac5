package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// JobRow is a job in a list.
type JobRow struct {
	JobIdentity
	JobCondition
	JobCapacity
	JobProgress
	JobAncestry
	Past bool `json:"past"` // another one has its name now
	// Context says that it does not match what was asked for, but something below it does.
	Context bool `json:"context,omitempty"`
}

// JobIdentity names a job and whose it is.
type JobIdentity struct {
	ID        string         `json:"id"`
	Address   schema.Address `json:"address"`
	Name      string         `json:"name"` // as its users call it
	Namespace string         `json:"namespace"`
	Band      schema.Band    `json:"band"`
	User      string         `json:"user,omitempty"`
}

// JobCondition is what a job does or waits for.
type JobCondition struct {
	Status  schema.JobStatus `json:"status"`
	Ready   bool             `json:"ready"`
	Reason  string           `json:"reason,omitempty"` // why it waits, failed or was stopped
	Blocked bool             `json:"blocked,omitempty"`
	Waits   plan.WaitKind    `json:"waits,omitempty"` // what for
}

// JobCapacity is what a job asks for and holds.
type JobCapacity struct {
	Shape  string   `json:"shape"` // of its slices
	Slices int      `json:"slices"`
	Chips  int      `json:"chips"` // of those that it holds
	Zones  []string `json:"zones,omitempty"`
}

// JobProgress is how far the attempts of a job have come.
type JobProgress struct {
	// Tasks counts those of the last attempt by state.
	Tasks       map[schema.TaskState]int `json:"tasks,omitempty"`
	Attempt     int                      `json:"attempt"`
	Failures    int                      `json:"failures"`
	Preemptions int                      `json:"preemptions"`
	AdmittedAt  time.Time                `json:"admitted_at,omitzero"`
	StartedAt   time.Time                `json:"started_at,omitzero"` // the last attempt
	EndedAt     time.Time                `json:"ended_at,omitzero"`
}

// JobAncestry is a job's place among the jobs that launched each other.
type JobAncestry struct {
	Parent   string `json:"parent,omitempty"` // its id
	Depth    int    `json:"depth"`            // below how many others it is
	Children int    `json:"children"`
	Launched bool   `json:"launched"`
}

// JobList is the answer of /api/v1/jobs.
type JobList struct {
	Version uint64   `json:"version"`
	Total   int      `json:"total"`   // jobs of the stack
	Matched int      `json:"matched"` // of them, those that were asked for
	Rows    int      `json:"rows"`    // with what stands above them in the tree
	Offset  int      `json:"offset"`
	Jobs    []JobRow `json:"jobs"`
	// Facets count all jobs by what can be asked for.
	Facets Facets `json:"facets"`
}

// Facets count jobs.
type Facets struct {
	Status    map[schema.JobStatus]int `json:"status"`
	Band      map[schema.Band]int      `json:"band"`
	Namespace map[string]int           `json:"namespace"`
}

func (x *index) rowOf(snap *Snapshot, e *jobEntry) JobRow {
	j := e.job
	row := JobRow{
		JobIdentity:  JobIdentity{ID: j.ID, Address: e.addr, Name: e.addr.String(), Band: schema.BandInteractive},
		JobCondition: JobCondition{Status: j.Status, Ready: j.Ready, Reason: j.Reason},
		JobProgress: JobProgress{
			Attempt: j.Attempt, Failures: j.Failures, Preemptions: j.Preemptions, AdmittedAt: j.AdmittedAt, EndedAt: j.End(),
		},
		JobAncestry: JobAncestry{Depth: e.depth, Children: len(e.children)},
		Past:        e.past,
	}
	if j.Launch != nil {
		row.Launched, row.Name, row.Parent = true, j.Launch.Name, j.Launch.Parent
	}
	if spec := j.Spec; spec != nil {
		r := &spec.Resources
		row.Namespace, row.User = spec.Namespace, spec.User
		row.Band = cmp.Or(spec.Band, schema.BandInteractive)
		row.Slices, row.Shape = r.Slices, shapeOfJob(j)
	}
	for _, name := range j.Slices {
		if held := snap.Doc.Slices[name]; held != nil {
			row.Chips += accelerators.Chips(&held.Spec)
			if zone := held.Spec.Zone; zone != "" && !slices.Contains(row.Zones, zone) {
				row.Zones = append(row.Zones, zone)
			}
		}
	}
	if p := x.pending[e.addr]; p != nil && !e.past && !j.Status.Ended() {
		row.Blocked, row.Waits, row.Reason = p.Blocked, p.Kind, strings.Join(p.Reasons, "; ")
	}
	if last := j.Last(); last != nil {
		row.StartedAt = last.StartedAt
		row.Tasks = tasksByState(last)
	}
	return row
}

func tasksByState(a *state.Attempt) map[schema.TaskState]int {
	counts := map[schema.TaskState]int{}
	for i := range a.Tasks {
		counts[a.Tasks[i].State]++
	}
	return counts
}

// jobQuery is what a list is asked for.
type jobQuery struct {
	words         []string // each in the address, id, user, zone, shape or reason; lower case
	statuses      []string
	bands         []string
	namespaces    []string
	pending       bool // only what waits
	sort          string
	descending    bool
	offset, limit int
}

const (
	defaultRows = 200
	maxRows     = 1000
)

// sortKeys are what rows can be sorted by, the rising order of each. Without
// one they stand as a tree.
func sortKeys() map[string]func(a, b *JobRow) int {
	return map[string]func(a, b *JobRow) int{
		"name":        func(a, b *JobRow) int { return strings.Compare(a.Name, b.Name) },
		"namespace":   func(a, b *JobRow) int { return strings.Compare(a.Namespace, b.Namespace) },
		"status":      func(a, b *JobRow) int { return statusOrder(a.Status) - statusOrder(b.Status) },
		"band":        func(a, b *JobRow) int { return bandOrder(a.Band) - bandOrder(b.Band) },
		"user":        func(a, b *JobRow) int { return strings.Compare(a.User, b.User) },
		"attempt":     func(a, b *JobRow) int { return a.Attempt - b.Attempt },
		"failures":    func(a, b *JobRow) int { return a.Failures - b.Failures },
		"preemptions": func(a, b *JobRow) int { return a.Preemptions - b.Preemptions },
		"chips":       func(a, b *JobRow) int { return a.Chips - b.Chips },
		"admitted":    func(a, b *JobRow) int { return a.AdmittedAt.Compare(b.AdmittedAt) },
		"started":     func(a, b *JobRow) int { return a.StartedAt.Compare(b.StartedAt) },
	}
}

// statusOrder puts first what people look for first.
func statusOrder(s schema.JobStatus) int {
	return slices.Index([]schema.JobStatus{
		schema.JobFailed, schema.JobPending, schema.JobRunning, schema.JobScheduled, schema.JobStopped, schema.JobSucceeded,
	}, s)
}

func bandOrder(b schema.Band) int {
	return slices.Index([]schema.Band{schema.BandProduction, schema.BandInteractive, schema.BandBatch}, b)
}

func readJobQuery(v url.Values) (jobQuery, string) {
	q := jobQuery{
		words:    strings.Fields(strings.ToLower(v.Get("q"))),
		statuses: list(v.Get("status")), bands: list(v.Get("band")), namespaces: list(v.Get("namespace")),
		pending: v.Get("pending") == "true", sort: v.Get("sort"), descending: v.Get("order") == "desc", limit: defaultRows,
	}
	if q.sort != "" && sortKeys()[q.sort] == nil {
		return q, "sort: \"" + q.sort + "\" is not one of name, namespace, status, band, user, attempt, failures, preemptions, chips, admitted, started"
	}
	wrong := readNumbers(v, map[string]*int{"offset": &q.offset, "limit": &q.limit})
	q.limit = min(q.limit, maxRows)
	return q, wrong
}

// readNumbers reads those that are given, and reports the first that is none.
func readNumbers(v url.Values, into map[string]*int) (wrong string) {
	for _, name := range slices.Sorted(maps.Keys(into)) {
		if text := v.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return name + ": want a whole number of at least 0, not \"" + text + "\""
			}
			*into[name] = n
		}
	}
	return ""
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func (q *jobQuery) matches(row *JobRow) bool {
	if q.statuses != nil && !slices.Contains(q.statuses, string(row.Status)) ||
		q.bands != nil && !slices.Contains(q.bands, string(row.Band)) ||
		q.namespaces != nil && !slices.Contains(q.namespaces, row.Namespace) ||
		q.pending && (row.Status.Ended() || row.Reason == "") {
		return false
	}
	if len(q.words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{
		row.Address.String(), row.Name, row.ID, row.User, row.Namespace, row.Shape, row.Reason, string(row.Waits), strings.Join(row.Zones, " "),
	}, "\n"))
	return !slices.ContainsFunc(q.words, func(w string) bool { return !strings.Contains(text, w) })
}

func (s *Server) jobs(w http.ResponseWriter, r *http.Request) {
	q, wrong := readJobQuery(r.URL.Query())
	if wrong != "" {
		fail(w, http.StatusBadRequest, wrong)
		return
	}
	f := s.current.Load()
	x := f.look()
	f.faced.Do(func() { f.facets = facetsOf(x.jobs) })
	out := JobList{Version: f.version, Total: len(x.jobs), Offset: q.offset, Jobs: []JobRow{}, Facets: f.facets}
	rows, matched := x.selected(&q)
	out.Matched, out.Rows = matched, len(rows)
	from := min(q.offset, len(rows))
	for _, r := range rows[from:min(from+q.limit, len(rows))] {
		out.Jobs = append(out.Jobs, r.row(&q))
	}
	answer(w, http.StatusOK, out)
}

// selectedJob is a job of a list.
type selectedJob struct {
	*jobEntry
	context bool // it does not match, but something below it does
}

func (s selectedJob) row(q *jobQuery) JobRow {
	row := *s.jobEntry.row
	row.Context = s.context
	if q.sort != "" {
		row.Depth = 0
	}
	return row
}

// selected are the jobs that match, sorted; as a tree, also those above them.
func (x *index) selected(q *jobQuery) (rows []selectedJob, matched int) {
	match := make([]bool, len(x.jobs))
	above := map[*jobEntry]bool{}
	for i, e := range x.jobs {
		if !q.matches(e.row) {
			continue
		}
		matched++
		match[i] = true
		for p := e.parent; q.sort == "" && p != nil && !above[p]; p = p.parent {
			above[p] = true
		}
	}
	rows = make([]selectedJob, 0, matched)
	for i, e := range x.jobs {
		if match[i] || above[e] {
			rows = append(rows, selectedJob{e, !match[i]})
		}
	}
	if order := sortKeys()[q.sort]; order != nil {
		slices.SortStableFunc(rows, func(a, b selectedJob) int {
			if q.descending {
				return order(b.jobEntry.row, a.jobEntry.row)
			}
			return order(a.jobEntry.row, b.jobEntry.row)
		})
	}
	return rows, matched
}

func facetsOf(jobs []*jobEntry) Facets {
	f := Facets{Status: map[schema.JobStatus]int{}, Band: map[schema.Band]int{}, Namespace: map[string]int{}}
	for _, e := range jobs {
		f.Status[e.row.Status]++
		f.Band[e.row.Band]++
		f.Namespace[e.row.Namespace]++
	}
	return f
}

// graph answers what depends on what, of what is declared.
func (s *Server) graph(w http.ResponseWriter, _ *http.Request) {
	f := s.current.Load()
	var declared []graphJob
	for _, e := range f.look().jobs {
		if !e.past && e.job.Launch == nil {
			declared = append(declared, graphJob{addr: e.addr, id: e.job.ID, status: e.job.Status})
		}
	}
	out := graphOf(&f.snap.Doc.Desired, declared)
	out.Version = f.version
	answer(w, http.StatusOK, out)
}
