package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/events"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// View is the stack as it is now: the state with what hosts report at this moment.
type View struct {
	presence

	Doc  *state.Document
	plan *plan.Plan
	// recorded is how the providers stood to those that led last; doc has how they
	// stand to this observation.
	recorded map[schema.ProviderName]state.ProviderCondition
	pending  map[schema.Address][]string
	only     []schema.Address
	now      time.Time

	workspace string             // "": the default one
	place     string             // where its state is
	page      string             // URL of the page that the leader serves, "": none
	cost      accelerators.Price // of what is there, for an hour, as far as it is known
	ledger    *notice.Ledger     // of notices, nil: there are none, or they are not known
	events    []state.Event      // the last ones, where they were asked for
}

// Read sees the stack once, without who leads it.
func Read(ctx context.Context, l *configuration.Loaded) (*View, error) {
	w, err := NewObserver(ctx, l)
	if err != nil {
		return nil, err
	}
	w.leader = nil
	return w.Observe(ctx)
}

func (v *View) shown(addr schema.Address) bool {
	if len(v.only) == 0 {
		return true
	}
	for _, a := range v.only {
		if a.Contains(addr) {
			return true
		}
	}
	return false
}

// Text prints the view.
func (v *View) Text(a *terminal.Terminal) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
	if v.workspace != "" {
		fmt.Fprintf(a.Stdout, "Workspace %s:\n\n", v.workspace)
	}
	fmt.Fprintln(w, "ADDRESS\tSTATUS\tTASKS\tATTEMPT\tFOR\tNOTE")
	count := 0
	for _, addr := range stack.SortedJobs(v.Doc) {
		if !v.shown(addr) {
			continue
		}
		count++
		j := v.Doc.Jobs[addr]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", addr, j.Status, tasksOf(j), j.Attempt, v.since(j), v.note(addr, j))
	}
	if count == 0 {
		fmt.Fprintln(a.Stdout, "No jobs. Declare one and run fray apply.")
	} else if err := w.Flush(); err != nil {
		return err
	}
	if held := v.held(); len(held) > 0 {
		fmt.Fprintf(a.Stdout, "\n%s\n", strings.Join(held, "\n"))
	}
	if len(v.only) > 0 {
		for _, addr := range stack.SortedJobs(v.Doc) {
			if v.shown(addr) {
				v.attempts(a, addr)
			}
		}
		return nil
	}
	if err := v.reservations(a); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout)
	fmt.Fprintln(a.Stdout, v.leader())
	if v.page != "" {
		fmt.Fprintf(a.Stdout, "Page: %s\n", v.page)
	}
	for _, text := range slices.Concat(v.conditionTexts(), receiverTexts(v), budgetTexts(v)) {
		fmt.Fprintln(a.Stdout, text)
	}
	if v.Doc.Paused != nil {
		fmt.Fprintf(a.Stdout, "Paused: %s.\n", pause.Text(v.Doc.Paused))
	}
	for _, name := range stack.SortedKeys(v.Doc.Unmanaged) {
		fmt.Fprintln(a.Stdout, v.unmanaged(name))
	}
	for _, r := range v.plan.Blocked {
		fmt.Fprintf(a.Stdout, "Blocked: %s\n", r.Detail)
	}
	for _, d := range v.plan.Drift {
		fmt.Fprintf(a.Stdout, "Found: %s: %s; %s\n", d.Addr, events.Unnamed(d.Found, d.Addr.String()), d.Then)
	}
	return nil
}

// unmanaged reports a slice that no plan touches.
func (v *View) unmanaged(name string) string {
	d := v.Doc.Unmanaged[name]
	return fmt.Sprintf("Slice %s (%s) is unmanaged since %s, by %s: it keeps running, and no plan touches it; fray state import takes it over.",
		name, d.Spec.Owner, d.At.Local().Format(time.DateTime), d.By)
}

// leader reports which process keeps the stack as desired, or changes it.
func (v *View) leader() string {
	const unwatched = "No controller watches this stack: failures are not repaired until the next fray apply or fray watch."
	switch {
	case v.led && v.silent, v.unsure:
		return v.silence()
	case v.silent:
		return unwatched + "\n" + v.silence()
	case !v.led:
		return unwatched
	}
	does := "is changing this stack"
	switch {
	case v.observed():
		does = "observes only and changes nothing"
	case v.lease.Yields && len(v.unseen()) > 0:
		does = "watches, and cannot see all of it,"
	case v.lease.Yields:
		does = "keeps it true"
	}
	return fmt.Sprintf("%s (pid %d on %s) %s since %s.",
		v.lease.Command, v.lease.PID, v.lease.Host, does, v.lease.AcquiredAt.Local().Format("15:04:05"))
}

// observed reports whether the leader only observes.
func (v *View) observed() bool { return v.led && v.lease.Command == stack.WatchObserves }

// tasksOf is "3/4" tasks running, or finished where the job has ended.
func tasksOf(j *state.Job) string {
	last := j.Last()
	if last == nil {
		return "-"
	}
	good := 0
	for i := range last.Tasks {
		// What was still running when its slice was lost does not run any more.
		if s := last.Tasks[i].State; s == schema.TaskRunning && last.Outcome == "" || s == schema.TaskSucceeded {
			good++
		}
	}
	return fmt.Sprintf("%d/%d", good, len(last.Tasks))
}

// since is how long the last attempt has been going, or took.
func (v *View) since(j *state.Job) string {
	last := j.Last()
	if last == nil {
		return "-"
	}
	return terminal.RoundAge(v.endOf(last).Sub(last.StartedAt))
}

// endOf is when an attempt ended, now for one that goes on. One whose end no
// step has recorded yet ended with its last task, as the hosts report it.
func (v *View) endOf(a *state.Attempt) time.Time {
	if !a.EndedAt.IsZero() {
		return a.EndedAt
	}
	end := a.StartedAt
	for i := range a.Tasks {
		t := &a.Tasks[i]
		if !t.State.Ended() || t.EndedAt.IsZero() || t.EndedAt.After(v.now) {
			return v.now
		}
		if t.EndedAt.After(end) {
			end = t.EndedAt
		}
	}
	if len(a.Tasks) == 0 {
		return v.now
	}
	return end
}

func (v *View) note(addr schema.Address, j *state.Job) string {
	note := v.scheduleNote(j)
	if reasons := v.pending[addr]; len(reasons) > 0 && (v.led || !j.Status.Ended()) {
		note = reasons[0]
		if len(reasons) > 1 {
			note += fmt.Sprintf(" (and %d more)", len(reasons)-1)
		}
	}
	if tail := progress.Tail(j.Last()); len(tail) > 0 && j.Status == schema.JobFailed {
		note += " | " + clipped(render.Clean(tail[len(tail)-1]))
	}
	if note == "" && j.Status == schema.JobRunning && j.Spec.HealthCheck != nil {
		note = v.wellness(j)
	}
	return strings.Join(slices.DeleteFunc([]string{note, notFirst(j), spent(j)}, func(part string) bool { return part == "" }), " ")
}

// maxLastLine is how many characters of a failed job's last line a table shows.
const maxLastLine = 100

func clipped(line string) string {
	if runes := []rune(line); len(runes) > maxLastLine {
		return string(runes[:maxLastLine]) + "…"
	}
	return line
}

// wellness is the result of a job's health check.
func (v *View) wellness(j *state.Job) string {
	if j.Spec.HostsActor() && (!v.led || v.lease.ControllerAddress == "") {
		return "serving; its name resolves seconds after fray watch starts"
	}
	return "healthy"
}

// spent names the budgets that were drawn on.
func spent(j *state.Job) string {
	var parts []string
	if j.Failures > 0 {
		parts = append(parts, spending("failures", j.Failures, j.Spec.Retries.Failure))
	}
	if j.Preemptions > 0 {
		parts = append(parts, spending("preemptions", j.Preemptions, j.Spec.Retries.Preemption))
	}
	if j.UnknownEnds > 0 {
		parts = append(parts, spending("unknown ends", j.UnknownEnds, j.Spec.Retries.Preemption))
	}
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// spending is what was spent of a budget, in words.
func spending(what string, n, budget int) string {
	switch {
	case budget == schema.Unlimited:
		return fmt.Sprintf("%s %d of unlimited", what, n)
	case budget == 0:
		return fmt.Sprintf("%s %d, none is retried", what, n)
	case n > budget:
		return fmt.Sprintf("%s %d, at most %d retried", what, n, budget)
	}
	return fmt.Sprintf("%s %d of %d", what, n, budget)
}

// attempts prints the history of one job.
func (v *View) attempts(a *terminal.Terminal, addr schema.Address) {
	j := v.Doc.Jobs[addr]
	fmt.Fprintf(a.Stdout, "\n%s (id %s)\n", addr, j.ID)
	for _, reason := range v.pending[addr] {
		fmt.Fprintf(a.Stdout, "  waits: %s\n", reason)
	}
	for _, line := range choiceLines(j) {
		fmt.Fprintf(a.Stdout, "  %s\n", line)
	}
	for i := range j.Attempts {
		t := &j.Attempts[i]
		end := "goes on"
		if t.Outcome != "" {
			end = fmt.Sprintf("%s after %s", progress.Outcome(t.Outcome), terminal.RoundAge(t.EndedAt.Sub(t.StartedAt)))
		}
		fmt.Fprintf(a.Stdout, "  attempt %d  %s  %s\n", t.Number, t.StartedAt.Local().Format(time.DateTime), end)
		fmt.Fprintf(a.Stdout, "    began: %s\n", t.Why)
		if t.Reason != "" {
			fmt.Fprintf(a.Stdout, "    ended: %s\n", t.Reason)
		}
		for n := range t.Tasks {
			task := &t.Tasks[n]
			state := task.State
			if t.Outcome != "" && !state.Ended() { // its last report before it was lost
				state = t.Outcome
			}
			fmt.Fprintf(a.Stdout, "    task %d  %s  host %d of %s  %s%s%s\n", n, cmp.Or(task.Address, "-"), task.Host, place(v.Doc, task.Slice),
				state, progress.Because(task.Reason), portList(task.Ports))
			for _, l := range task.Tail {
				fmt.Fprintf(a.Stdout, "      | %s\n", l)
			}
		}
	}
}

// place is a slice and the zone that it is in, as far as that is known.
func place(doc *state.Document, slice string) string {
	if s := doc.Slices[slice]; s != nil && s.Spec.Zone != "" {
		return slice + " in " + s.Spec.Zone
	}
	return slice
}

func portList(ports map[string]int) string {
	if len(ports) == 0 {
		return ""
	}
	var parts []string
	for _, name := range stack.SortedKeys(ports) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, ports[name]))
	}
	return "  ports " + strings.Join(parts, " ")
}
