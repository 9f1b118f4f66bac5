package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Group counts what has the same values of the fields that jobs are grouped by. A job whose
// slices differ in one of them counts once in each of its groups.
type Group struct {
	Values []string                 `json:"values"` // of the fields, "" for none
	Jobs   int                      `json:"jobs"`
	States map[schema.JobStatus]int `json:"states"` // of the jobs
	Ready  int                      `json:"ready"`  // of the running jobs
	Waits  map[plan.WaitKind]int    `json:"waits"`  // of the pending jobs, by what for
	// Tasks are those of the last attempts, Running of them those that run.
	Tasks   int `json:"tasks"`
	Running int `json:"tasks_running"`
	Slices  int `json:"slices"`
	Hosts   int `json:"hosts"` // of these slices; a packed one has none of its own
	Chips   int `json:"chips"`
}

// Shown is which jobs and slices count.
type Shown interface {
	Job(addr schema.Address) bool
	Slice(name string, s *state.Slice) bool
}

// tally makes groups of what is shown.
type tally struct {
	*Matches
	by     []Field
	groups map[string]*Group
}

// Groups are those that the jobs and slices that are shown form, those with the most jobs first.
func (m *Matches) Groups(by []Field, shown Shown) []*Group {
	t := &tally{Matches: m, by: by, groups: map[string]*Group{}}
	held := make(map[string]bool, len(m.doc.Slices))
	for addr, j := range m.doc.Jobs {
		for _, name := range j.Slices {
			held[name] = true
		}
		if shown.Job(addr) {
			t.job(addr, j)
		}
	}
	for name, s := range m.doc.Slices {
		if !held[name] && shown.Slice(name, s) {
			t.slice(t.of(schema.Address{}, nil, s), s)
		}
	}
	return slices.SortedFunc(maps.Values(t.groups), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(b.Hosts, a.Hosts), slices.Compare(a.Values, b.Values))
	})
}

// of is the group of a job with one of its slices; either may be missing.
func (t *tally) of(addr schema.Address, j *state.Job, s *state.Slice) *Group {
	values := make([]string, len(t.by))
	for i, f := range t.by {
		switch {
		case s != nil && f.ofSlices():
			values[i] = valueOfSlice(f, s)
		case j != nil:
			values[i] = t.valueOf(f, addr, j)
		}
	}
	key := strings.Join(values, "\x00")
	g := t.groups[key]
	if g == nil {
		g = &Group{Values: values, States: map[schema.JobStatus]int{}, Waits: map[plan.WaitKind]int{}}
		t.groups[key] = g
	}
	return g
}

func (t *tally) job(addr schema.Address, j *state.Job) {
	var in []*Group // of this job, few
	bySlice := make(map[string]*Group, len(j.Slices))
	for _, name := range j.Slices {
		s := t.doc.Slices[name]
		if s == nil {
			continue
		}
		g := t.of(addr, j, s)
		bySlice[name] = g
		t.slice(g, s)
		if !slices.Contains(in, g) {
			in = append(in, g)
		}
	}
	if len(in) == 0 {
		in = append(in, t.of(addr, j, nil))
	}
	for _, g := range in {
		g.Jobs++
		g.States[j.Status]++
		if j.Status == schema.JobRunning && j.Ready {
			g.Ready++
		}
		if kind := t.waits[addr]; kind != "" && !j.Status.Ended() {
			g.Waits[kind]++
		}
	}
	last := j.Last()
	if last == nil {
		return
	}
	for i := range last.Tasks {
		g := bySlice[last.Tasks[i].Slice]
		if g == nil {
			g = in[0]
		}
		g.Tasks++
		if last.Outcome == "" && last.Tasks[i].State == schema.TaskRunning {
			g.Running++
		}
	}
}

func (t *tally) slice(g *Group, s *state.Slice) {
	g.Slices++
	if s.Spec.On == "" {
		g.Hosts += max(1, s.Spec.Hosts)
	}
	g.Chips += accelerators.Chips(&s.Spec)
}

// ended are the jobs of a group that run no more, without those that failed.
func (g *Group) ended() int {
	return g.States[schema.JobSucceeded] + g.States[schema.JobStopped] + g.States[schema.JobScheduled]
}

// Cells are a group's line, after its values.
func (g *Group) Cells() []string {
	var out []string
	for _, n := range []int{g.Jobs, g.States[schema.JobRunning], g.States[schema.JobPending], g.States[schema.JobFailed], g.ended()} {
		out = append(out, amount(n))
	}
	return append(out, fmt.Sprintf("%d/%d", g.Running, g.Tasks), amount(g.Slices), amount(g.Hosts), amount(g.Chips), g.waiting())
}

// Columns are the names of the cells.
func Columns() []string {
	return []string{"JOBS", "RUNNING", "PENDING", "FAILED", "ENDED", "TASKS", "SLICES", "HOSTS", "CHIPS", "WAITS FOR"}
}

func amount(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// waiting is what the pending jobs of a group wait for, the most frequent first.
func (g *Group) waiting() string {
	kinds := slices.SortedFunc(maps.Keys(g.Waits), func(a, b plan.WaitKind) int {
		return cmp.Or(cmp.Compare(g.Waits[b], g.Waits[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", g.Waits[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// Terms are the conditions of what is in a group.
func (g *Group) Terms(by []Field) []Term {
	terms := make([]Term, len(by))
	for i, f := range by {
		terms[i] = Is(f, g.Values[i])
	}
	return terms
}
