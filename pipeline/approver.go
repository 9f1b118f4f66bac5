package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/review"
	"github.com/fray-ml/fray/terminal"
)

// Approver finds the plan that was reviewed in the pull request of a commit, and checks that it may
// be applied.
type Approver struct {
	Terminal    *terminal.Terminal
	Environment Environment
	Paths       []string
	Options     configuration.Options
	Needed      int // approvals of the head; 0: that it is merged is enough
}

// Run writes which plan it is as outputs, or returns why none may be applied.
func (a *Approver) Run(ctx context.Context) error {
	e := &a.Environment
	client, err := e.Connect(release.Version())
	if err != nil {
		return err
	}
	options := a.Options
	options.Isolated = true
	judged, _ := configuration.Judge(a.Paths, options)
	approval := review.Approval{Target: (&Planner{Environment: *e}).target(judged), Commit: e.Run.Commit, Needed: a.Needed}
	if approval.Pull, err = a.pull(ctx, client); err != nil {
		return err
	}
	author, err := client.Author(ctx)
	if err != nil {
		return err
	}
	comments, err := client.Comments(ctx, approval.Pull.Number)
	if err != nil {
		return err
	}
	approval.Plan, approval.Found = review.Find(comments, author, review.KindPlan, approval.Target)
	if a.Needed > 0 {
		if approval.Approvals, err = client.Approvals(ctx, approval.Pull.Number); err != nil {
			return err
		}
	}
	if rejection := approval.Rejection(); rejection != "" {
		return errors.New(rejection)
	}
	if approval.Plan.Changes {
		fmt.Fprintf(a.Terminal.Stdout, "Pull request %d: the plan of run %d for %s may be applied.\n", approval.Pull.Number, approval.Plan.Run, approval.Target)
	} else {
		fmt.Fprintf(a.Terminal.Stdout, "Pull request %d: the plan for %s has no changes.\n", approval.Pull.Number, approval.Target)
	}
	return e.writeOutputs(approval.Outputs())
}

// pull is the pull request of the event, or that which the commit is of.
func (a *Approver) pull(ctx context.Context, client Client) (forge.Pull, error) {
	number, err := a.Environment.pullOf(ctx, client)
	if err != nil {
		return forge.Pull{}, err
	}
	if number == 0 {
		return forge.Pull{}, fmt.Errorf("commit %s is of no pull request: nothing was reviewed", a.Environment.Run.Commit)
	}
	return client.Pull(ctx, number)
}
