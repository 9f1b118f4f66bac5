package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// conclusion is the end of a run: what is recorded and reported of it.
type conclusion struct {
	*run

	plan *plan.Plan
}

// finish lets calls under way end, records outputs, saves, and reports how it went.
func (r *run) finish(finishing context.Context, ended error, p *plan.Plan) error {
	r.stepper.Drain(finishing)
	c := conclusion{run: r, plan: p}
	err := c.conclude(finishing, ended)
	r.Carried = p
	if r.Options.JSON && (err != nil || !r.Leads) {
		return errors.Join(err, c.printResult(err))
	}
	return err
}

func (r *conclusion) conclude(finishing context.Context, ended error) error {
	if errors.Is(ended, apply.ErrStateMoved) {
		return ended
	}
	outputErr := r.recordOutputs(finishing, ended)
	saveErr := r.stepper.Save(finishing)
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
	if err := r.blockedMeanwhile(); err != nil {
		return err
	}
	left := r.stillUnfinished()
	failed := r.failedJobs(r.stepper.Document(), r.concerns(r.plan))
	if err := r.summary(left == nil && failed == nil); err != nil {
		return err
	}
	if r.Destroying || r.Stopping {
		return errors.Join(failed, outputErr)
	}
	if failed == nil && outputErr == nil && left == nil && !r.Options.JSON {
		if err := configuration.PrintOutputs(r.Terminal, r.stepper.Document().Outputs); err != nil {
			return err
		}
	}
	var controllerErr error
	if r.Loaded.Desired.Controller != nil && !r.watched { // it keeps the rest true
		controllerErr = startController(r.Terminal, r.Loaded)
	}
	return errors.Join(failed, outputErr, controllerErr, left)
}

// evaluated is the configuration with everything now known. How its conditions
// stand is reported, but not of a change that ended otherwise than as planned.
func (r *conclusion) evaluated(ctx context.Context, doc *state.Document, ended error) (*schema.Config, error) {
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
	return cfg, r.Terminal.Diagnostics(r.Loaded.Source.Files(), r.Loaded.Unreported(diags))
}

// recordOutputs evaluates the outputs with everything now known.
func (r *conclusion) recordOutputs(ctx context.Context, ended error) error {
	doc := r.stepper.Document()
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
	return r.stepper.Accept(ctx, next)
}

// blockedMeanwhile reports the changes by values that became known in the middle of an
// apply which a lifecycle rule blocks.
func (r *conclusion) blockedMeanwhile() error {
	last := r.stepper.Last()
	if last == nil || r.Stopping {
		return nil
	}
	err := proposal.ShowBlocked(r.Terminal, r.Loaded, last)
	if err != nil {
		r.Terminal.Warn("everything else of this plan was done")
	}
	return err
}

// summary is the closing line of apply and destroy; without complete, something
// else is left, or a job failed.
func (r *conclusion) summary(complete bool) error {
	n := r.plan.Counts()
	w := r.Terminal.Stdout
	switch {
	case r.Stopping, r.Options.JSON:
		return nil
	case r.Destroying && r.plan.Empty():
		_, err := fmt.Fprintln(w, nothingToDestroy)
		return err
	case r.Destroying:
		_, err := fmt.Fprintf(w, "\nDestroy complete: %d destroyed.\n", n[plan.VerbDelete])
		return err
	}
	result := "Apply complete"
	if !complete {
		result = "Applied, but not all is well"
	}
	_, err := fmt.Fprintf(w, "\n%s: %s%d created, %d updated, %d restarted, %d replaced, %d destroyed.%s\n",
		result, proposal.AmendmentCounts(r.plan), n[plan.VerbCreate], n[plan.VerbUpdate], n[plan.VerbRestart], n[plan.VerbReplace], n[plan.VerbDelete], jobCounts(r.stepper.Document()))
	return err
}

// jobCounts is " Jobs: 4 running, 2 succeeded.", "" without jobs.
func jobCounts(doc *state.Document) string {
	count := map[schema.JobStatus]int{}
	for _, j := range doc.Jobs {
		count[j.Status]++
	}
	var parts []string
	for _, s := range []schema.JobStatus{schema.JobPending, schema.JobScheduled, schema.JobRunning, schema.JobSucceeded, schema.JobFailed, schema.JobStopped} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " Jobs: " + strings.Join(parts, ", ") + "."
}
