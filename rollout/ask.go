package rollout

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// ask shows the plan and has it approved, unless there is nothing to approve.
// Nothing has been begun yet, so that a Ctrl-C leaves at once.
func (r *Rollout) ask(ctx context.Context) (*plan.Plan, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p, err := proposal.Preview(ctx, r.Loaded, r.Change)
	if err != nil {
		return nil, terminal.Interrupted(ctx, err)
	}
	unasked := nothingIn(p)
	if unasked && r.Destroying {
		return p, nil // reported by itself
	}
	if err := proposal.Show(r.Terminal, r.Loaded, p, false, false); err != nil {
		return p, err
	}
	if err := proposal.ShowBlocked(r.Terminal, r.Loaded, p); err != nil {
		return p, err
	}
	if err := proposal.CheckPolicies(p); err != nil || unasked {
		return p, err
	}
	return p, r.approve(ctx)
}

// nothingIn reports whether a plan has nothing to be approved.
func nothingIn(p *plan.Plan) bool { return p.Empty() && len(p.Pending) == 0 }

// unchanged reports whether the state would be as good as it is without this
// apply. A lifecycle is no change of what runs, and yet to be remembered.
func (r *Rollout) unchanged(p *plan.Plan) bool {
	return nothingIn(p) && (r.Destroying || newRecorder(r).same() && planchange.Remembers(apply.Accept(r.Loaded.Document, r.Change.Request(r.Loaded.Document))))
}

func (r *Rollout) approve(ctx context.Context) error {
	within := ""
	if name := r.Loaded.Stack.Named(); name != "" {
		within = fmt.Sprintf(" in workspace %q", name)
	}
	question := "Carry out this plan" + within + "?"
	switch {
	case r.Change.Mode == plan.ModeRefreshOnly:
		question = "Record this in the state" + within + "?"
	case r.Destroying:
		question = "Destroy all of this" + within + "? There is no way back."
	}
	unasked := errors.New("no terminal to ask for approval; review with fray plan and use --auto-approve")
	if r.Terminal.Stdin == nil {
		return unasked
	}
	fmt.Fprintf(r.Terminal.Stderr, "\n%s Only \"yes\" is accepted: ", question)
	line, err := r.Terminal.ReadLine(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(r.Terminal.Stderr)
		return terminal.Interrupted(ctx, err)
	case strings.TrimSpace(line) == "yes":
		return nil
	case err != nil && line == "":
		fmt.Fprintln(r.Terminal.Stderr)
		return unasked
	}
	return errors.New("not approved; nothing was done")
}

// nothing ends an apply whose plan is empty; outputs may still be new.
func (r *Rollout) nothing(ctx context.Context) error {
	if r.Destroying {
		fmt.Fprintln(r.Terminal.Stdout, nothingToDestroy)
		return nil
	}
	if r.Options.Wait == WaitComplete && hasLive(r.Loaded.Document) {
		r.Options.AutoApprove = true
		return r.Apply(ctx)
	}
	if r.Loaded.Desired.Controller != nil {
		if err := startController(r.Terminal, r.Loaded); err != nil {
			return err
		}
	}
	u := newRun(r)
	u.failedBefore = failedAttempts(r.Loaded.Document)
	return u.failedJobs(r.Loaded.Document, u.targeted)
}

const nothingToDestroy = "Nothing to destroy."

func hasLive(doc *state.Document) bool {
	for _, j := range doc.Jobs {
		if !j.Status.Ended() && !j.Spec.IsService() {
			return true
		}
	}
	return false
}
