package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func statusCommand(a *app) *cobra.Command {
	var config configFlags
	var asJSON, watch bool
	var dir string
	cmd := &cobra.Command{
		Use:   "status [ADDR]",
		Short: "Show what runs, and why something does not",
		Long: `Show every job with its tasks and, where it waits or failed, the reason. With
ADDR, also each of its attempts: why it began, where it ran, how it ended.
status reads only; it takes no lease.

--watch goes on looking, once a second, until q or Ctrl-C: on a terminal in a view
of the whole screen (? shows its keys), and else by printing one picture after
another. With --json it prints a document, on one line, whenever something changed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			w, err := l.looker(ctx)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if w.only, err = l.addresses("status", args); err != nil {
					return err
				}
			}
			if watch {
				return a.watchStatus(ctx, w, asJSON)
			}
			view, err := w.look(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(view.document())
			}
			return view.text(a)
		},
	}
	config.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on looking until q or Ctrl-C")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "look at the stack of `DIR` (or of one file)")
	return cmd
}

// view is the stack as it is now: the state with what hosts report at this moment.
type view struct {
	presence

	doc  *state.Document
	plan *plan.Plan
	// recorded is how the providers stood to those that led last; doc has how they
	// stand to this look.
	recorded map[schema.ProviderName]state.ProviderCondition
	pending  map[schema.Address][]string
	only     []schema.Address
	now      time.Time

	workspace string        // "": the default one
	place     string        // where its state is
	cost      schema.Price  // of what is there, for an hour, as far as it is known
	events    []store.Event // the last ones, where they were asked for
}

// look sees the stack once, without who leads it.
func (l *loaded) look(ctx context.Context) (*view, error) {
	w, err := l.looker(ctx)
	if err != nil {
		return nil, err
	}
	w.leader = nil
	return w.look(ctx)
}

func (v *view) shown(addr schema.Address) bool {
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

func (v *view) text(a *app) error {
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	if v.workspace != "" {
		fmt.Fprintf(a.stdout, "Workspace %s:\n\n", v.workspace)
	}
	fmt.Fprintln(w, "ADDRESS\tSTATUS\tTASKS\tATTEMPT\tFOR\tNOTE")
	count := 0
	for _, addr := range sortedJobs(v.doc) {
		if !v.shown(addr) {
			continue
		}
		count++
		j := v.doc.Jobs[addr]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", addr, j.Status, tasksOf(j), j.Attempt, v.since(j), v.note(addr, j))
	}
	if count == 0 {
		fmt.Fprintln(a.stdout, "No jobs. Declare one and run fray apply.")
	} else if err := w.Flush(); err != nil {
		return err
	}
	if held := v.held(); len(held) > 0 {
		fmt.Fprintf(a.stdout, "\n%s\n", strings.Join(held, "\n"))
	}
	if len(v.only) > 0 {
		for _, addr := range sortedJobs(v.doc) {
			if v.shown(addr) {
				v.attempts(a, addr)
			}
		}
		return nil
	}
	if err := v.reservations(a); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	fmt.Fprintln(a.stdout, v.leader())
	for _, text := range v.conditionTexts() {
		fmt.Fprintln(a.stdout, text)
	}
	if v.doc.Paused != nil {
		fmt.Fprintf(a.stdout, "Paused: %s.\n", controller.PausedText(v.doc.Paused))
	}
	for _, name := range sortedKeys(v.doc.Disowned) {
		fmt.Fprintln(a.stdout, v.disowned(name))
	}
	for _, r := range v.plan.Refusals {
		fmt.Fprintf(a.stdout, "Refused: %s\n", r.Detail)
	}
	for _, d := range v.plan.Drift {
		fmt.Fprintf(a.stdout, "Found: %s: %s; %s\n", d.Addr, unnamed(d.Found, d.Addr.String()), d.Then)
	}
	return nil
}

// disowned says what nobody looks after.
func (v *view) disowned(name string) string {
	d := v.doc.Disowned[name]
	return fmt.Sprintf("Slice %s (%s) is disowned since %s, by %s: it runs on, and no plan touches it; fray state import takes it up.",
		name, d.Spec.Owner, d.At.Local().Format(time.DateTime), d.By)
}

// leader says who keeps the stack true, or changes it.
func (v *view) leader() string {
	const nobody = "Nobody watches this stack: what breaks stays broken until fray apply or fray watch."
	switch {
	case v.led && v.silent, v.unsure:
		return v.silence()
	case v.silent:
		return nobody + "\n" + v.silence()
	case !v.led:
		return nobody
	}
	does := "is changing this stack"
	switch {
	case v.observed():
		does = "looks on and changes nothing"
	case v.lease.Yields && len(v.unseen()) > 0:
		does = "watches, and cannot see all of it,"
	case v.lease.Yields:
		does = "keeps it true"
	}
	return fmt.Sprintf("%s (pid %d on %s) %s since %s.",
		v.lease.Command, v.lease.PID, v.lease.Host, does, v.lease.AcquiredAt.Local().Format("15:04:05"))
}

// observed reports whether the one who leads only looks on.
func (v *view) observed() bool { return v.led && v.lease.Command == watchObserves }

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
func (v *view) since(j *state.Job) string {
	last := j.Last()
	if last == nil {
		return "-"
	}
	return roundAge(v.endOf(last).Sub(last.StartedAt))
}

// endOf is when an attempt ended, now for one that goes on. One whose end no
// step has recorded yet ended with its last task, as the hosts report it.
func (v *view) endOf(a *state.Attempt) time.Time {
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

func roundAge(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

func (v *view) note(addr schema.Address, j *state.Job) string {
	note := j.Reason
	if reasons := v.pending[addr]; len(reasons) > 0 && (v.led || !j.Status.Ended()) {
		note = reasons[0]
		if len(reasons) > 1 {
			note += fmt.Sprintf(" (and %d more)", len(reasons)-1)
		}
	}
	if note == "" && j.Status == schema.JobRunning && j.Spec.HealthCheck != nil {
		note = v.wellness(j)
	}
	return strings.TrimSpace(strings.Join([]string{note, spent(j)}, " "))
}

// wellness is what a job's health check says.
func (v *view) wellness(j *state.Job) string {
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
func (v *view) attempts(a *app, addr schema.Address) {
	j := v.doc.Jobs[addr]
	fmt.Fprintf(a.stdout, "\n%s (id %s)\n", addr, j.ID)
	for _, reason := range v.pending[addr] {
		fmt.Fprintf(a.stdout, "  waits: %s\n", reason)
	}
	for i := range j.Attempts {
		t := &j.Attempts[i]
		end := "goes on"
		if t.Outcome != "" {
			end = fmt.Sprintf("%s after %s", outcome(t.Outcome), roundAge(t.EndedAt.Sub(t.StartedAt)))
		}
		fmt.Fprintf(a.stdout, "  attempt %d  %s  %s\n", t.Number, t.StartedAt.Local().Format(time.DateTime), end)
		fmt.Fprintf(a.stdout, "    began: %s\n", t.Why)
		if t.Reason != "" {
			fmt.Fprintf(a.stdout, "    ended: %s\n", t.Reason)
		}
		for n := range t.Tasks {
			task := &t.Tasks[n]
			state := task.State
			if t.Outcome != "" && !state.Ended() { // its last word before it was lost
				state = t.Outcome
			}
			fmt.Fprintf(a.stdout, "    task %d  %s  host %d of %s  %s%s%s\n", n, cmp.Or(task.Address, "-"), task.Host, place(v.doc, task.Slice),
				state, because(task.Reason), portList(task.Ports))
			for _, l := range task.Tail {
				fmt.Fprintf(a.stdout, "      | %s\n", l)
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
	for _, name := range sortedKeys(ports) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, ports[name]))
	}
	return "  ports " + strings.Join(parts, " ")
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
