package rollout

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// stillPending names what the time did not suffice for.
func (r *conclusion) stillPending() error {
	waiting := r.waiting()
	msg := fmt.Sprintf("after %s this still waits:\n%s", r.Options.Timeout, progress.ReasonLines(waiting))
	switch {
	case r.Destroying:
		msg = fmt.Sprintf("after %s this is not destroyed yet:\n%sIt is recorded as to be destroyed: another fray destroy, or fray watch, goes on with it.", r.Options.Timeout, progress.ReasonLines(waiting))
	case r.Stopping:
		msg = fmt.Sprintf("after %s this has not stopped yet:\n%sIt is recorded as to be stopped: another fray stop, or fray watch, goes on with it.", r.Options.Timeout, progress.ReasonLines(waiting))
	default:
		msg += "It stays declared: fray watch or another fray apply goes on with it."
	}
	if failed := r.failedJobs(r.stepper.Document(), r.targeted); failed != nil && !r.Destroying && !r.Stopping {
		msg += "\nBesides, " + failed.Error()
	}
	return &terminal.Exit{Code: terminal.ExitPending, Msg: msg}
}

// stillBlocked names what no time suffices for, after what it waits for.
func (r *conclusion) stillBlocked() error {
	msg := "this cannot start any more:\n" + strings.TrimSuffix(progress.ReasonLines(r.waiting()), "\n")
	if failed := r.failedJobs(r.stepper.Document(), r.targeted); failed != nil {
		msg = failed.Error() + "\nTherefore " + msg
	}
	return &terminal.Exit{Code: terminal.ExitError, Msg: msg}
}

// stillUnfinished reports what is left for the next apply, nil if nothing is.
func (r *conclusion) stillUnfinished() error {
	if len(r.leftBefore) == 0 {
		return nil
	}
	return &terminal.Exit{Code: terminal.ExitPending, Msg: "what the plan named is done, but meanwhile there is more to do:\n" + progress.ReasonLines(r.leftBefore) +
		"fray plan shows it; another fray apply does it, or fray watch."}
}

// failedAttempts are the jobs that have failed, with the attempt that did.
func failedAttempts(doc *state.Document) map[schema.Address]int {
	failed := map[schema.Address]int{}
	for addr, j := range doc.Jobs {
		if j.Status == schema.JobFailed {
			failed[addr] = j.Attempt
		}
	}
	return failed
}

// tailLines is how many of the last lines of a failed job its error has: a program reports why it ends in the last ones.
const tailLines = 3

// lastLines are those of a failed job, a line each.
func lastLines(j *state.Job) string {
	var lines strings.Builder
	tail := progress.Tail(j.Last())
	for _, l := range tail[max(0, len(tail)-tailLines):] {
		lines.WriteString("      | " + render.Clean(l) + "\n")
	}
	return lines.String()
}

// failedJobs is an error that names those of some jobs which ended as failed.
func (r *run) failedJobs(doc *state.Document, among func(schema.Address) bool) error {
	var lines []string
	for _, addr := range stack.SortedJobs(doc) {
		j := doc.Jobs[addr]
		if j.Status != schema.JobFailed || !among(addr) || !r.answersFor(addr) {
			continue
		}
		quoted := terminal.ShellQuote(addr.String())
		line := fmt.Sprintf("  %s: %s\n", addr, j.Reason) + lastLines(j)
		if attempt, ok := r.failedBefore[addr]; ok && attempt == j.Attempt {
			line += fmt.Sprintf("      it failed earlier and stays so until it changes or --replace=%s\n", quoted)
		}
		lines = append(lines, line+"      its output: fray logs "+quoted)
	}
	switch len(lines) {
	case 0:
		return nil
	case 1:
		return &terminal.Exit{Code: terminal.ExitError, Msg: "a job failed:\n" + lines[0]}
	}
	return &terminal.Exit{Code: terminal.ExitError, Msg: fmt.Sprintf("%d jobs failed:\n%s", len(lines), strings.Join(lines, "\n"))}
}
