package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// finish lets calls under way end, records outputs, saves, and says how it went.
func (r *Rollout) finish(hard context.Context, ended error, p *plan.Plan) error {
	r.Executor.Drain(hard)
	err := r.conclude(hard, ended, p)
	if r.Options.JSON {
		return errors.Join(err, r.result(p, err))
	}
	return err
}

func (r *Rollout) conclude(hard context.Context, ended error, p *plan.Plan) error {
	if errors.Is(ended, apply.ErrStateMoved) {
		return ended
	}
	outputErr := r.recordOutputs(hard, ended)
	saveErr := r.Executor.Save(hard)
	r.progress.Close()
	switch {
	case saveErr != nil:
		return errors.Join(saveErr, ended)
	case errors.Is(ended, errTimeout):
		return r.stillPending()
	case errors.Is(ended, errBlocked):
		return r.stillBlocked()
	case ended != nil:
		return ended
	}
	if err := r.refusedMeanwhile(); err != nil {
		return err
	}
	left := r.stillUnfinished()
	if err := r.summary(p, left == nil); err != nil {
		return err
	}
	failed := r.failedJobs(r.Executor.Document(), r.concerns(p))
	if r.Destroying || r.Stopping {
		return errors.Join(failed, outputErr)
	}
	if failed == nil && outputErr == nil && left == nil && !r.Options.JSON {
		if err := configuration.PrintOutputs(r.Terminal, r.Executor.Document().Outputs); err != nil {
			return err
		}
	}
	var controllerErr error
	if r.Loaded.Desired.Controller != nil { // it keeps the rest true
		controllerErr = r.startController()
	}
	return errors.Join(failed, outputErr, controllerErr, left)
}

// concerns reports whether the failure of a job is one of this change: it was
// acted on, or there was nothing to do and the job is why not all is well.
func (r *Rollout) concerns(p *plan.Plan) func(schema.Address) bool {
	if r.Destroying || r.Stopping || r.concerned(p) {
		return r.scope.Names
	}
	return r.targeted
}

// concerned reports whether there is something to do or to wait for in a plan that
// this change answers for.
func (r *Rollout) concerned(p *plan.Plan) bool {
	return len(p.Amendments) > 0 ||
		slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Verb != plan.VerbNone && r.answersFor(c.Addr) }) ||
		slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return r.answersFor(a.Addr) }) ||
		slices.ContainsFunc(p.Drift, func(d plan.Drift) bool { return r.answersFor(d.Addr) }) ||
		slices.ContainsFunc(p.Pending, func(w plan.Pending) bool { return r.answersFor(w.Addr) })
}

// evaluated is the configuration with everything now known. How its conditions
// stand is told, but not of a change that ended otherwise than as planned.
func (r *Rollout) evaluated(ctx context.Context, doc *state.Document, ended error) (*schema.Config, error) {
	cfg := r.Loaded.Config
	if !r.Loaded.ReadsComputed() && len(cfg.Conditions) == 0 {
		return cfg, nil
	}
	cfg, diags := r.Loaded.Evaluate(ctx, doc)
	if ended != nil {
		if cfg == nil {
			return nil, terminal.ErrReported
		}
		return cfg, nil
	}
	r.progress.Close()
	return cfg, r.Terminal.Diagnostics(r.Loaded.Source.Files(), r.Loaded.Untold(diags))
}

// recordOutputs evaluates the outputs with everything now known.
func (r *Rollout) recordOutputs(ctx context.Context, ended error) error {
	doc := r.Executor.Document()
	if r.Stopping || r.Destroying && !r.Change.UnlaunchAll { // the files are not read, so nothing is known of outputs
		return nil
	}
	outputs := map[string]schema.Output{}
	if !r.Destroying {
		cfg, err := r.evaluated(ctx, doc, ended)
		if err != nil {
			return err
		}
		if outputs, err = schema.SealOutputs(cfg.Outputs, r.Loaded.Sealer); err != nil {
			return err
		}
	}
	if len(outputs) == 0 && len(doc.Outputs) == 0 {
		return nil
	}
	next := doc.Clone()
	next.Outputs = outputs
	return r.Executor.Accept(ctx, next)
}

// stillBlocked names what no time suffices for, after what it waits for.
func (r *Rollout) stillBlocked() error {
	msg := "this cannot start any more:\n" + strings.TrimSuffix(progress.ReasonLines(r.waiting()), "\n")
	if failed := r.failedJobs(r.Executor.Document(), r.targeted); failed != nil {
		msg = failed.Error() + "\nTherefore " + msg
	}
	return &terminal.Exit{Code: terminal.ExitError, Msg: msg}
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

// failedJobs is an error that names those of some jobs which ended as failed.
func (r *Rollout) failedJobs(doc *state.Document, among func(schema.Address) bool) error {
	var lines []string
	for _, addr := range stack.SortedJobs(doc) {
		j := doc.Jobs[addr]
		if j.Status != schema.JobFailed || !among(addr) || !r.answersFor(addr) {
			continue
		}
		word := terminal.ShellWord(addr.String())
		line := fmt.Sprintf("  %s: %s\n", addr, j.Reason)
		if attempt, ok := r.failedBefore[addr]; ok && attempt == j.Attempt {
			line += fmt.Sprintf("      it failed earlier and stays so until it changes or --replace=%s\n", word)
		}
		lines = append(lines, line+"      its output: fray logs "+word)
	}
	switch len(lines) {
	case 0:
		return nil
	case 1:
		return &terminal.Exit{Code: terminal.ExitError, Msg: "a job failed:\n" + lines[0]}
	}
	return &terminal.Exit{Code: terminal.ExitError, Msg: fmt.Sprintf("%d jobs failed:\n%s", len(lines), strings.Join(lines, "\n"))}
}

// summary is the closing line of apply and destroy; without complete, something
// else is left.
func (r *Rollout) summary(p *plan.Plan, complete bool) error {
	n := p.Counts()
	w := r.Terminal.Stdout
	switch {
	case r.Stopping, r.Options.JSON:
		return nil
	case r.Destroying && p.Empty():
		_, err := fmt.Fprintln(w, nothingToDestroy)
		return err
	case r.Destroying:
		_, err := fmt.Fprintf(w, "\nDestroy complete: %d destroyed.\n", n[plan.VerbDelete])
		return err
	}
	word := "Apply complete"
	if !complete {
		word = "Applied, but not all is well"
	}
	_, err := fmt.Fprintf(w, "\n%s: %s%d created, %d updated, %d restarted, %d replaced, %d destroyed.%s\n",
		word, proposal.AmendedWords(p), n[plan.VerbCreate], n[plan.VerbUpdate], n[plan.VerbRestart], n[plan.VerbReplace], n[plan.VerbDelete], jobCounts(r.Executor.Document()))
	return err
}

// jobCounts is " Jobs: 4 running, 2 succeeded.", "" without jobs.
func jobCounts(doc *state.Document) string {
	count := map[schema.JobStatus]int{}
	for _, j := range doc.Jobs {
		count[j.Status]++
	}
	var parts []string
	for _, s := range []schema.JobStatus{schema.JobPending, schema.JobRunning, schema.JobSucceeded, schema.JobFailed, schema.JobStopped} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " Jobs: " + strings.Join(parts, ", ") + "."
}
