package rollout

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

// refresh has what was observed recorded in the state, once that is approved. Nothing that
// runs is touched.
func (r *Rollout) refresh(ctx context.Context) error {
	var shown *plan.Plan
	if !r.Options.AutoApprove {
		p, err := r.ask(ctx)
		if err != nil || p.Empty() {
			return err
		}
		shown = p
	}
	starting, finishing, stop := r.Terminal.Interruptible(ctx, r.interrupted, leavingAtOnce(r.verb()))
	defer stop()
	if lease, ok := r.Loaded.Stack.WatchLease(starting); ok && lease.Command != stack.WatchObserves {
		return r.recordedBy(starting, fmt.Sprintf("%s (pid %d on %s)", lease.Command, lease.PID, lease.Host), shown)
	}
	return newRun(r).underLease(starting, finishing, r.Loaded.Document, shown)
}

// recordedBy leaves the record to a controller, which observes all the time.
func (r *Rollout) recordedBy(ctx context.Context, controller string, shown *plan.Plan) error {
	p := shown
	if p == nil {
		var err error
		if p, err = proposal.Preview(ctx, r.Loaded, r.Change); err != nil {
			return terminal.Interrupted(ctx, err)
		}
		if err := proposal.Show(r.Terminal, r.Loaded, p, r.Options.JSON, false); err != nil {
			return err
		}
		if err := proposal.CheckPolicies(p); err != nil {
			return err
		}
	}
	if r.Options.JSON {
		return r.Terminal.PrintJSON(resultOf(r.Loaded.Document, p, nil))
	}
	fmt.Fprintf(r.Terminal.Stdout, "\n%s leads this stack and records by itself what it observes; there is nothing left to do.\n", controller)
	return nil
}

// recordRefresh observes under the lease and records what is as it was approved.
func (r *leaseRun) recordRefresh(starting context.Context, stepper *apply.Stepper, shown *plan.Plan) error {
	p, err := stepper.Refresh(starting, r.Change.Within())
	if err != nil {
		return terminal.Interrupted(starting, err)
	}
	if err := r.Change.Judge(r.Loaded, p, r.Loaded.Document); err != nil {
		return err
	}
	switch {
	case shown == nil:
		if err := proposal.Show(r.Terminal, r.Loaded, p, r.Options.JSON, false); err != nil {
			return err
		}
	case !reflect.DeepEqual(p.Drift, shown.Drift):
		return errors.New("what is observed changed while you were deciding; nothing was recorded: run fray apply --refresh-only again")
	}
	if r.checkFound != nil {
		if err := r.checkFound(p); err != nil {
			return err
		}
	}
	if err := proposal.CheckPolicies(p); err != nil {
		return err
	}
	if len(p.Drift) > 0 {
		if err := stepper.Record(r.lease.Context(), p); err != nil {
			return err
		}
	}
	if r.Options.JSON {
		return r.Terminal.PrintJSON(resultOf(p.Next, p, nil))
	}
	if len(p.Drift) > 0 {
		fmt.Fprintf(r.Terminal.Stdout, "\nRefresh complete: %s recorded in the state.\n", terminal.Counted(len(p.Drift), "difference", "differences"))
	}
	return nil
}
