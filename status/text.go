package status

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/events"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/status/selection"
	"github.com/fray-ml/fray/terminal"
)

// How many rows are shown where nothing else is asked for.
const (
	groupRows   = 10 // of each summary of a folded stack
	urgentRows  = 20 // of the jobs of a folded stack that need attention
	noticeLines = 20 // of each kind below the jobs
)

// printer prints a view.
type printer struct {
	*View
	a *terminal.Terminal
}

// Text prints the view.
func (v *View) Text(a *terminal.Terminal) error { return printer{v, a}.text() }

func (v printer) text() error {
	a := v.a
	if v.workspace != "" {
		fmt.Fprintf(a.Stdout, "Workspace %s:\n\n", v.workspace)
	}
	jobs := shownJobs(v.View)
	if v.Select.Folds(len(jobs)) {
		if err := v.fold(jobs); err != nil {
			return err
		}
		jobs = nil
	} else {
		from, to, more := v.Select.Part(len(jobs))
		if err := v.rows(jobs[from:to], len(jobs)); err != nil {
			return err
		}
		if jobs = jobs[from:to]; more > 0 {
			fmt.Fprintf(a.Stdout, "%s: --page %d shows the next, --limit 0 all.\n", terminal.Counted(more, "more job", "more jobs"), max(1, v.Select.Page)+1)
		}
	}
	if held := v.held(); len(held) > 0 {
		fmt.Fprintf(a.Stdout, "\n%s\n", strings.Join(held, "\n"))
	}
	if len(v.only) > 0 {
		for _, addr := range jobs {
			v.attempts(a, addr)
		}
		return nil
	}
	if !v.found.Filtered() {
		if err := v.reservations(a); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.Stdout)
	fmt.Fprintln(a.Stdout, v.leader())
	if v.page != "" {
		fmt.Fprintf(a.Stdout, "Page: %s\n", v.page)
	}
	for _, text := range slices.Concat(v.conditionTexts(), receiverTexts(v.View), budgetTexts(v.View)) {
		fmt.Fprintln(a.Stdout, text)
	}
	if v.Doc.Paused != nil {
		fmt.Fprintf(a.Stdout, "Paused: %s.\n", pause.Text(v.Doc.Paused))
	}
	v.notices()
	return nil
}

// rows prints a line for each job.
func (v printer) rows(jobs []schema.Address, all int) error {
	switch {
	case len(jobs) > 0:
		return v.table(jobs)
	case all > 0:
		fmt.Fprintf(v.a.Stdout, "Page %d has no jobs: there are %d, %d on a page.\n", v.Select.Page, all, v.Select.Limit)
	case v.found.Filtered() && len(v.Doc.Jobs) > 0:
		fmt.Fprintf(v.a.Stdout, "No job matches, of %d.\n", len(v.Doc.Jobs))
	default:
		fmt.Fprintln(v.a.Stdout, "No jobs. Declare one and run fray apply.")
	}
	return nil
}

func (v printer) table(jobs []schema.Address) error {
	w := tabwriter.NewWriter(v.a.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ADDRESS\tSTATUS\tTASKS\tATTEMPT\tFOR\tNOTE")
	for _, addr := range jobs {
		j := v.Doc.Jobs[addr]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", addr, j.Status, tasksOf(j), j.Attempt, v.since(j), v.note(addr, j))
	}
	return w.Flush()
}

// notices prints what is not as declared besides the jobs, some of each kind.
func (v printer) notices() {
	var unmanaged, blocked, drift []string
	for _, name := range stack.SortedKeys(v.Doc.Unmanaged) {
		unmanaged = append(unmanaged, v.unmanaged(name))
	}
	for _, r := range v.plan.Blocked {
		blocked = append(blocked, "Blocked: "+r.Detail)
	}
	for _, d := range v.plan.Drift {
		drift = append(drift, fmt.Sprintf("Found: %s: %s; %s", d.Addr, events.Unnamed(d.Found, d.Addr.String()), d.Then))
	}
	for _, lines := range [][]string{unmanaged, blocked, drift} {
		for _, line := range lines[:min(len(lines), noticeLines)] {
			fmt.Fprintln(v.a.Stdout, line)
		}
		if more := len(lines) - noticeLines; more > 0 {
			fmt.Fprintf(v.a.Stdout, "And %d more like these: fray status --json has all.\n", more)
		}
	}
}

// fold prints a stack of many jobs: sums of them, and the jobs that need attention.
func (v printer) fold(jobs []schema.Address) error {
	a := v.a
	if by := v.Select.By; len(by) > 0 {
		groups := groupsOf(v.View, by)
		from, to, more := v.Select.Part(len(groups))
		if err := printGroups(a, by, groups[from:to]); err != nil {
			return err
		}
		if more > 0 {
			fmt.Fprintf(a.Stdout, "%s: --page %d shows the next, --limit 0 all.\n", terminal.Counted(more, "more group", "more groups"), max(1, v.Select.Page)+1)
		}
		return nil
	}
	fmt.Fprintf(a.Stdout, "%s.\n", v.counts())
	for _, f := range []selection.Field{selection.FieldNamespace, selection.FieldState, selection.FieldZone} {
		groups := groupsOf(v.View, []selection.Field{f})
		fmt.Fprintln(a.Stdout)
		if err := printGroups(a, []selection.Field{f}, groups[:min(len(groups), groupRows)]); err != nil {
			return err
		}
		if more := len(groups) - groupRows; more > 0 {
			fmt.Fprintf(a.Stdout, "%s: fray status --group-by %s shows all.\n", terminal.Counted(more, "more "+string(f), "more "+string(f)+"s"), f)
		}
	}
	urgent, all := v.urgent(jobs)
	if len(urgent) > 0 {
		fmt.Fprintf(a.Stdout, "\nNeed attention:\n")
		if err := v.table(urgent); err != nil {
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
func (v printer) urgent(jobs []schema.Address) ([]schema.Address, int) {
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

func printGroups(a *terminal.Terminal, by []selection.Field, groups []*selection.Group) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
	var head []string
	for _, f := range by {
		head = append(head, strings.ToUpper(string(f)))
	}
	fmt.Fprintln(w, strings.Join(append(head, selection.Columns()...), "\t"))
	for _, g := range groups {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(append(namesOf(g), g.Cells()...), "\t"), "\t"))
	}
	return w.Flush()
}
