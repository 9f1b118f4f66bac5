package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/review"
	"github.com/fray-ml/fray/terminal"
)

// Drifter looks for drift, and keeps an issue about it.
type Drifter struct {
	Terminal    *terminal.Terminal
	Environment Environment
	Paths       []string
	Options     configuration.Options
	Issue       bool // an issue is kept
}

// Run does it. Drift is no error.
func (d *Drifter) Run(ctx context.Context) error {
	if d.Environment.Fork != OriginHere {
		return errors.New("this job runs for a pull request of a fork: it looks at no stack")
	}
	loud := quiet(d.Terminal, d.Environment.Commands)
	drift, err := d.look(ctx)
	loud()
	if err != nil {
		drift.Failure = d.Environment.Masked(textOf(err, nil))
	}
	errs := []error{err, d.Environment.writeOutputs(drift.Outputs()), d.Environment.writeSummary(func(int) string { return drift.Text() })}
	fmt.Fprintf(d.Terminal.Stdout, "%s: %s.\n", drift.Target, drift.Line())
	if d.Issue {
		errs = append(errs, d.keep(ctx, drift))
	}
	return errors.Join(errs...)
}

// look compares what is observed with what the state records.
func (d *Drifter) look(ctx context.Context) (*review.Drift, error) {
	options := configuration.Options{Isolated: true, Workspace: d.Options.Workspace}
	judged, _ := configuration.Judge(d.Paths, options)
	drift := &review.Drift{Target: (&Planner{Environment: d.Environment}).target(judged), Run: d.Environment.Run, Version: release.Version()}
	change := proposal.ChangeOptions{Options: d.Options, RefreshOnly: true}
	l, c, err := proposal.Read(ctx, d.Terminal, d.Paths, &change, false)
	if err != nil {
		return drift, err
	}
	p, err := proposal.Preview(ctx, l, c)
	if err != nil {
		return drift, err
	}
	drift.Target.Workspace, drift.Found = l.Stack.Workspace, p.Drift
	return drift, proposal.Show(d.Terminal, l, p, false, false)
}

// keep opens, edits or closes the issue.
func (d *Drifter) keep(ctx context.Context, drift *review.Drift) error {
	client, err := d.Environment.Connect(release.Version())
	if err != nil {
		return err
	}
	author, err := client.Author(ctx)
	if err != nil {
		return err
	}
	open, err := client.Issues(ctx, review.DriftLabel)
	if err != nil {
		return err
	}
	choice := drift.ChooseIssue(open, author)
	switch choice.Action {
	case review.OpenIssue:
		made, err := client.CreateIssue(ctx, review.DriftLabel, choice.Issue)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.Terminal.Stdout, "Opened issue %d.\n", made.Number)
	case review.EditIssue:
		fmt.Fprintf(d.Terminal.Stdout, "Edited issue %d.\n", choice.Issue.Number)
		return client.EditIssue(ctx, choice.Issue)
	case review.CloseIssue:
		fmt.Fprintf(d.Terminal.Stdout, "Closed issue %d.\n", choice.Issue.Number)
		return client.CloseIssue(ctx, choice.Issue)
	case review.LeaveIssue:
	}
	return nil
}
