package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// JobDetail is the answer of /api/v1/jobs/{id}.
type JobDetail struct {
	Version uint64 `json:"version"`
	JobRow
	Pending []string `json:"pending,omitempty"` // why it waits, one for each place or cause
	// Alternatives are the accelerators that it may run on, in order of preference; absent
	// where there is no choice.
	Alternatives []schema.Accelerator `json:"alternatives,omitempty"`
	Choice       *Choice              `json:"choice,omitempty"`
	ParentName   string               `json:"parent_name,omitempty"`
	Below        []JobRow             `json:"below"`    // what it launched, and what that did
	Attempts     []AttemptRow         `json:"attempts"` // the last ones, oldest first
	Command      []string             `json:"command"`  // secrets hidden
	Env          []EnvRow             `json:"env,omitempty"`
	Image        string               `json:"image,omitempty"`
	Reservation  string               `json:"reservation,omitempty"`
	Group        string               `json:"group,omitempty"`
	Priority     int                  `json:"priority"`
	Preemptible  bool                 `json:"preemptible"`
	MaxFailures  int                  `json:"max_failures"`    // -1: no end
	MaxPreempts  int                  `json:"max_preemptions"` // -1: no end
	RetryAt      time.Time            `json:"retry_at,omitzero"`
	DependsOn    []string             `json:"depends_on,omitempty"`
	Schedule     *ScheduleRow         `json:"schedule,omitempty"` // absent of a job without one
	Now          time.Time            `json:"now"`                // the controller's clock
}

// ScheduleRow is where a job with a schedule stands.
type ScheduleRow struct {
	Cron     string    `json:"cron"`
	Timezone string    `json:"timezone"`
	Suspend  bool      `json:"suspend,omitempty"`
	Next     time.Time `json:"next,omitzero"` // when the next run is due
	Run      int       `json:"run"`           // number of the last run that began, RunDueAt when it was due
	RunDueAt time.Time `json:"run_due_at,omitzero"`
	Queued   int       `json:"queued,omitempty"` // runs that wait for the present one
	Ended    int       `json:"ended,omitempty"`  // number of the last run that has ended, and how
	// Outcome is absent before the first end.
	Outcome schema.JobStatus `json:"outcome,omitempty"`
}

// EnvRow is a variable of a job's environment.
type EnvRow struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a secret's is hidden
}

// AttemptRow is one attempt of a job.
type AttemptRow struct {
	Number    int              `json:"number"`
	Why       string           `json:"why"` // it began
	StartedAt time.Time        `json:"started_at"`
	ReadyAt   time.Time        `json:"ready_at,omitzero"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
	Outcome   schema.TaskState `json:"outcome,omitempty"` // absent while it goes on
	Reason    string           `json:"reason,omitempty"`
	Stopping  bool             `json:"stopping,omitempty"`
	Slices    []string         `json:"slices"`
	Zones     []string         `json:"zones,omitempty"` // as far as the slices are there
	Tasks     []TaskRow        `json:"tasks,omitempty"`
}

// TaskRow is one task of an attempt.
type TaskRow struct {
	Index    int              `json:"index"`
	Slice    string           `json:"slice"`
	Host     int              `json:"host"`
	Zone     string           `json:"zone,omitempty"`
	Address  string           `json:"address,omitempty"`
	State    schema.TaskState `json:"state"`
	ExitCode *int             `json:"exit_code,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Ports    map[string]int   `json:"ports,omitempty"`
	Tail     []string         `json:"tail,omitempty"` // its last lines
	BadHost  bool             `json:"bad_host,omitempty"`
	// Silent is for how long its host has said nothing, in seconds, where that is much.
	Silent float64 `json:"silent_seconds,omitempty"`
	Health string  `json:"health,omitempty"`
}

// find looks a job up by its id, or by the address of the one that has it now.
func (x *index) find(name string) *jobEntry {
	if e := x.byID[name]; e != nil {
		return e
	}
	i := slices.IndexFunc(x.jobs, func(e *jobEntry) bool { return !e.past && e.addr.String() == name })
	if i < 0 {
		return nil
	}
	return x.jobs[i]
}

// jobID is the id of a job by its id or address, false if it is not known.
func (s *Server) jobID(name string) (id string, known bool) {
	if e := s.current.Load().look().find(name); e != nil {
		return e.job.ID, true
	}
	return "", false
}

func (s *Server) job(w http.ResponseWriter, r *http.Request) {
	f := s.current.Load()
	x := f.look()
	e := x.find(r.PathValue("id"))
	if e == nil {
		fail(w, http.StatusNotFound, "there is no job \""+r.PathValue("id")+"\", or it was forgotten after its end")
		return
	}
	out := JobDetail{
		Version: f.version, JobRow: *e.row, Below: []JobRow{}, Attempts: []AttemptRow{}, Command: []string{},
		RetryAt: e.job.RetryAt, Now: s.cfg.Now(), Choice: choiceOf(e.job), Schedule: scheduleOf(e.job),
	}
	if p := x.pending[e.addr]; p != nil && !e.past && !e.job.Status.Ended() {
		out.Pending = p.Reasons
	}
	if e.parent != nil {
		out.ParentName = e.parent.row.Name
	}
	below(e, e.depth, &out.Below)
	for i := range e.job.Attempts {
		out.Attempts = append(out.Attempts, attemptRow(f.snap, e.job, &e.job.Attempts[i]))
	}
	if e.job.Spec != nil {
		out.describe(e.job.Spec)
	}
	answer(w, http.StatusOK, out)
}

func scheduleOf(j *state.Job) *ScheduleRow {
	if j.Spec == nil || j.Spec.Schedule == nil {
		return nil
	}
	s := j.Spec.Schedule
	row := &ScheduleRow{Cron: s.Cron, Timezone: cmp.Or(s.Timezone, "UTC"), Suspend: s.Suspend}
	if runs := j.Scheduled; runs != nil {
		row.Next, row.Run, row.RunDueAt, row.Queued = runs.Due, runs.Run, runs.DueAt, len(runs.Queued)
		row.Ended, row.Outcome = runs.Ended, runs.Outcome
	}
	return row
}

func below(e *jobEntry, depth int, into *[]JobRow) {
	for _, child := range e.children {
		row := *child.row
		row.Depth = child.depth - depth - 1
		*into = append(*into, row)
		below(child, depth, into)
	}
}

func (d *JobDetail) describe(spec *schema.Job) {
	for _, word := range spec.Command {
		d.Command = append(d.Command, word.String())
	}
	for name, value := range spec.Environment.Env {
		d.Env = append(d.Env, EnvRow{Name: name, Value: value.String()})
	}
	slices.SortFunc(d.Env, func(a, b EnvRow) int { return strings.Compare(a.Name, b.Name) })
	d.Alternatives = spec.Resources.Accelerators
	d.Image, d.Reservation, d.Priority = spec.Environment.Image, spec.Resources.Reservation, spec.Priority
	d.Preemptible, d.MaxFailures, d.MaxPreempts = spec.Resources.Preemptible, spec.Retries.Failure, spec.Retries.Preemption
	if group := spec.Addr.GroupAddress(); !group.IsZero() {
		d.Group = group.String()
	}
	for _, addr := range slices.Concat(spec.DependsOn, spec.Uses) {
		if name := addr.String(); !slices.Contains(d.DependsOn, name) {
			d.DependsOn = append(d.DependsOn, name)
		}
	}
}

func attemptRow(snap *Snapshot, job *state.Job, a *state.Attempt) AttemptRow {
	row := AttemptRow{
		Number: a.Number, Why: a.Why, StartedAt: a.StartedAt, ReadyAt: a.ReadyAt, EndedAt: a.EndedAt, Outcome: a.Outcome,
		Reason: a.Reason, Stopping: a.StopGeneration > 0 && a.Outcome == "", Slices: a.Slices,
	}
	for _, name := range a.Slices {
		if zone := zoneOf(snap, name); zone != "" && !slices.Contains(row.Zones, zone) {
			row.Zones = append(row.Zones, zone)
		}
	}
	for i := range a.Tasks {
		t := &a.Tasks[i]
		task := TaskRow{
			Index: i, Slice: t.Slice, Host: t.Host, Zone: zoneOf(snap, t.Slice), Address: t.Address, State: t.State,
			ExitCode: t.ExitCode, Reason: t.Reason, Ports: t.Ports, Tail: t.Tail, BadHost: t.BadHost,
		}
		if a.Outcome == "" {
			task.live(snap, job, a)
		}
		row.Tasks = append(row.Tasks, task)
	}
	return row
}

// quietHost is when a host's silence is worth a word: agents report every few seconds.
const quietHost = 10 * time.Second

// live adds what the task's host says right now.
func (t *TaskRow) live(snap *Snapshot, job *state.Job, a *state.Attempt) {
	for i := range snap.Hosts[t.Slice] {
		h := &snap.Hosts[t.Slice][i]
		if h.Host != t.Host {
			continue
		}
		if silent := h.SilentFor(snap.Attended); silent >= quietHost {
			t.Silent = silent.Seconds()
		}
		if r := h.Task; r != nil && job.Spec != nil && r.Job == job.Spec.Addr && r.Attempt == a.Number {
			t.Health = string(r.Health)
			if len(t.Tail) == 0 {
				t.Tail = r.Tail
			}
		}
	}
}

func zoneOf(snap *Snapshot, slice string) string {
	if s := snap.Doc.Slices[slice]; s != nil {
		return s.Spec.Zone
	}
	return ""
}

// Choice is which of its alternatives a job was last given slices of.
type Choice struct {
	state.Choice
	Text string `json:"text"` // the reason for people
}

func choiceOf(j *state.Job) *Choice {
	c := j.Chosen()
	if c == nil {
		return nil
	}
	return &Choice{Choice: *c, Text: c.Reason.Text()}
}

// shapeOfJob names what a slice of a job is made of: of several alternatives the chosen one,
// or all while none is.
func shapeOfJob(j *state.Job) string {
	r := &j.Spec.Resources
	if c := j.Chosen(); c != nil {
		r = &j.Spec.As(c.Accelerator).Resources
	} else if len(r.Accelerators) > 0 {
		return schema.JoinAccelerators(r.Accelerators)
	}
	return shapeOf(&schema.SliceSpec{TPU: r.TPU, GPU: r.GPU, MachineType: r.MachineType, CPU: r.CPU, Memory: r.Memory})
}
