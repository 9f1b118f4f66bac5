package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
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

// tally makes groups of what a view shows.
type tally struct {
	v      *View
	by     []Field
	groups map[string]*Group
}

// groups are those that the jobs and slices of a view form, those with the most jobs first.
func (v *View) groups(by []Field) []*Group {
	t := &tally{v: v, by: by, groups: map[string]*Group{}}
	held := make(map[string]bool, len(v.Doc.Slices))
	for addr, j := range v.Doc.Jobs {
		for _, name := range j.Slices {
			held[name] = true
		}
		if v.shown(addr) {
			t.job(addr, j)
		}
	}
	for name, s := range v.Doc.Slices {
		if !held[name] && v.shownSlice(name, s) {
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
			values[i] = t.v.valueOf(f, addr, j)
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
		s := t.v.Doc.Slices[name]
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
		if kind := t.v.matched().waits[addr]; kind != "" && !j.Status.Ended() {
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

// cells are a group's line, after its values.
func (g *Group) cells() []string {
	var out []string
	for _, n := range []int{g.Jobs, g.States[schema.JobRunning], g.States[schema.JobPending], g.States[schema.JobFailed], g.ended()} {
		out = append(out, amount(n))
	}
	return append(out, fmt.Sprintf("%d/%d", g.Running, g.Tasks), amount(g.Slices), amount(g.Hosts), amount(g.Chips), g.waiting())
}

var groupColumns = [...]string{"JOBS", "RUNNING", "PENDING", "FAILED", "ENDED", "TASKS", "SLICES", "HOSTS", "CHIPS", "WAITS FOR"}

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

// folds reports whether there are too many jobs for a line each.
func (v *View) folds(jobs int) bool {
	return len(v.Select.By) > 0 || !v.Select.Paged && v.Select.Limit > 0 && jobs > v.Select.Limit
}

// fold prints a stack of many jobs: sums of them, and the jobs that need attention.
func (v *View) fold(a *terminal.Terminal, jobs []schema.Address) error {
	if by := v.Select.By; len(by) > 0 {
		groups := v.groups(by)
		from, to, more := v.Select.page(len(groups))
		if err := printGroups(a, by, groups[from:to]); err != nil {
			return err
		}
		if more > 0 {
			fmt.Fprintf(a.Stdout, "%s: --page %d shows the next, --limit 0 all.\n", terminal.Counted(more, "more group", "more groups"), max(1, v.Select.Page)+1)
		}
		return nil
	}
	fmt.Fprintf(a.Stdout, "%s.\n", v.counts())
	for _, f := range []Field{FieldNamespace, FieldState, FieldZone} {
		groups := v.groups([]Field{f})
		fmt.Fprintln(a.Stdout)
		if err := printGroups(a, []Field{f}, groups[:min(len(groups), groupRows)]); err != nil {
			return err
		}
		if more := len(groups) - groupRows; more > 0 {
			fmt.Fprintf(a.Stdout, "%s: fray status --group-by %s shows all.\n", terminal.Counted(more, "more "+string(f), "more "+string(f)+"s"), f)
		}
	}
	urgent, all := v.urgent(jobs)
	if len(urgent) > 0 {
		fmt.Fprintf(a.Stdout, "\nNeed attention:\n")
		if err := v.table(a, urgent); err != nil {
			return err
		}
	}
	if more := all - len(urgent); more > 0 {
		fmt.Fprintf(a.Stdout, "%s that failed or wait.\n", terminal.Counted(more, "more job", "more jobs"))
	}
	fmt.Fprintf(a.Stdout, "\n%s are folded: fray status --page 1 lists them in pages of %d, --limit 0 all of them, --filter state=failed some, --group-by zone sums them up.\n",
		terminal.Counted(len(jobs), "job", "jobs"), v.Select.Limit)
	return nil
}

// urgent are the jobs that failed, are blocked, or wait for what is not underway, the most
// urgent first, as far as they are shown, and how many there are.
func (v *View) urgent(jobs []schema.Address) ([]schema.Address, int) {
	waiting := v.waiting()
	byUrgency := map[jobUrgency][]schema.Address{}
	all := 0
	for _, addr := range jobs {
		u := urgencyOf(v.Doc.Jobs[addr])
		if w, waits := waiting[addr]; waits {
			u = min(u, w)
		}
		if u > jobStuck {
			continue
		}
		all++
		if len(byUrgency[u]) < urgentRows {
			byUrgency[u] = append(byUrgency[u], addr)
		}
	}
	// Many that failed must not hide those that wait.
	failed, stuck := byUrgency[jobBroken], byUrgency[jobStuck]
	failed = failed[:min(len(failed), max(urgentRows/2, urgentRows-len(stuck)))]
	return append(slices.Clone(failed), stuck[:min(len(stuck), urgentRows-len(failed))]...), all
}

func printGroups(a *terminal.Terminal, by []Field, groups []*Group) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
	var head []string
	for _, f := range by {
		head = append(head, strings.ToUpper(string(f)))
	}
	fmt.Fprintln(w, strings.Join(append(head, groupColumns[:]...), "\t"))
	for _, g := range groups {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(append(g.names(), g.cells()...), "\t"), "\t"))
	}
	return w.Flush()
}

// names are a group's values for people.
func (g *Group) names() []string {
	out := make([]string, len(g.Values))
	for i, value := range g.Values {
		out[i] = cmp.Or(clean(value), "-")
	}
	return out
}
