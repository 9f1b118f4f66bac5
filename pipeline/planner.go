package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/review"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// CommentMode is a closed set of when a pull request gets a comment.
type CommentMode string

// The modes.
const (
	CommentAlways  CommentMode = "always"
	CommentChanges CommentMode = "changes" // a comment is added once there is something to show, and edited ever after
	CommentNever   CommentMode = "never"
)

// Planner checks and plans a configuration, and reports it.
type Planner struct {
	Terminal    *terminal.Terminal
	Environment Environment
	Paths       []string
	Options     configuration.Options
	Policies    policies.Options
	Files       PlanFiles
	Comment     CommentMode
	Format      bool // files must be in the canonical style
	Status      bool // a status of the commit is set
}

// PlanFiles are the files that a planner writes, "" for none.
type PlanFiles struct {
	Plan     string
	Unsealed bool // the plan is saved also where its file would not be encrypted
	Comment  string
	Quality  string
}

// Run does it. Its error is that of the job: changes are none.
func (p *Planner) Run(ctx context.Context) error {
	client := p.settle(ctx)
	loud := quiet(p.Terminal, p.Environment.Commands)
	report := p.report(ctx)
	loud()
	if err := p.publish(ctx, client, report); err != nil {
		return err
	}
	if report.Outcome().Failed() {
		return &terminal.Exit{Code: terminal.ExitError, Msg: report.Target.String() + ": " + report.Line() + after(report.Failure)}
	}
	return nil
}

// after is a text behind a colon, "" for none.
func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// settle finds out where the commits come from, where the event does not tell, and returns the
// forge, nil where there is none. A job for a fork gets no token.
func (p *Planner) settle(ctx context.Context) Client {
	client, err := p.Environment.Connect(release.Version())
	if err != nil {
		client = nil
	}
	if p.Environment.Fork == OriginUnknown && client != nil {
		if pull, err := client.Pull(ctx, p.Environment.Pull); err == nil {
			p.Environment.Run.Commit, p.Environment.Fork = pull.Head, OriginHere
			if pull.Fork {
				p.Environment.Fork = OriginFork
			}
		}
	}
	if p.Environment.Fork != OriginHere {
		p.Environment = p.Environment.withoutSecrets()
		return nil
	}
	return client
}

// report checks and plans.
func (p *Planner) report(ctx context.Context) *review.Report {
	found := &problems{env: p.Environment}
	p.Terminal.Diagnosed = found.diagnosed
	defer func() { p.Terminal.Diagnosed = nil }()
	report := &review.Report{Run: p.Environment.Run, Version: release.Version()}
	defer func() { report.Problems = found.found }()

	options := p.Options
	options.Isolated = p.Environment.Fork != OriginHere
	judged, diags := configuration.Judge(p.Paths, options)
	report.Target = p.target(judged)
	if p.Format && judged.Source != nil {
		if err := p.Terminal.Diagnostics(judged.Source.Files(), unformatted(judged.Source)); err != nil && !errors.Is(err, terminal.ErrReported) {
			report.Failure = err.Error()
			return report
		}
	}
	switch p.Environment.Fork {
	case OriginFork:
		report.Skipped = review.SkippedFork
	case OriginUnknown:
		report.Skipped = review.SkippedUnknown
	case OriginHere:
	}
	if diags.HasErrors() || report.Skipped != "" {
		if err := p.Terminal.Diagnostics(terminal.FilesOf(judged.Source), diags); err != nil && !errors.Is(err, terminal.ErrReported) {
			report.Failure = err.Error()
		}
		return report
	}
	if err := p.plan(ctx, report); err != nil && !errors.Is(err, terminal.ErrReported) {
		report.Failure = p.Environment.Masked(err.Error())
	}
	return report
}

// target is what the report is about.
func (p *Planner) target(l *configuration.Loaded) review.Target {
	dir := "."
	if l.Source != nil {
		dir = p.Environment.within(l.Source.Dir())
	}
	return review.Target{Dir: dir, Workspace: l.Options.Workspace}
}

// plan plans, and saves the plan.
func (p *Planner) plan(ctx context.Context, report *review.Report) error {
	options := proposal.ChangeOptions{Options: p.Options, Policies: p.Policies}
	l, c, err := proposal.Read(ctx, p.Terminal, p.Paths, &options, p.Files.Plan != "")
	if err != nil {
		return err
	}
	made, err := proposal.Preview(ctx, l, c)
	if err != nil {
		return err
	}
	report.Planned = &review.Planned{
		Counts: made.Counts(), Changes: !made.Empty(), Cost: change.Total(made.Costs),
		Shown: proposal.Markdown(l, made),
	}
	report.Notes = append(report.Notes, busy(ctx, l)...)
	if err := proposal.Show(p.Terminal, l, made, false, false); err != nil {
		return err
	}
	report.Policies = markdown.PoliciesOf(made)
	if err := proposal.ShowBlocked(p.Terminal, l, made); err != nil {
		return err
	}
	if report.Planned.Changes && p.Files.Plan != "" {
		return p.save(ctx, report, l, c, made)
	}
	return nil
}

// save saves the plan for an apply by another job. A plan that is not sealed has all that it would
// do in clear, and artifacts can be read by all who can read the repository.
func (p *Planner) save(ctx context.Context, report *review.Report, l *configuration.Loaded, c *proposal.Change, made *plan.Plan) error {
	sealed, err := l.Stack.Keys.Encrypts(ctx)
	if err != nil {
		return err
	}
	if !sealed && !p.Files.Unsealed {
		report.Notes = append(report.Notes, "The plan is not saved: the state is not encrypted, and so would the plan not be. Add an encryption block to the configuration, or --unsealed to save it in clear.")
		return nil
	}
	if err := savedplan.Save(ctx, p.Files.Plan, l, c, made); err != nil {
		return err
	}
	report.Planned.File = p.Files.Plan
	report.Planned.Digest, err = digestOf(p.Files.Plan)
	return err
}

// busy notes who else is changing the stack: the plan is stale once that is done.
func busy(ctx context.Context, l *configuration.Loaded) []string {
	if l.Stack.Fresh {
		return nil
	}
	lease, err := store.ReadLease(ctx, l.Stack.Store)
	if err != nil || !lease.Live(time.Now()) || lease.Yields {
		return nil
	}
	return []string{lease.Who() + " is changing this stack now; the plan may be stale once that is done."}
}

// publish writes the report to the job and to the forge. Whatever cannot be written is an
// error only after everything else was.
func (p *Planner) publish(ctx context.Context, client Client, report *review.Report) error {
	var changed []forge.File
	if p.Environment.Commands {
		if client != nil && p.Environment.Pull != 0 && len(report.Problems) > 0 {
			changed, _ = client.Files(ctx, p.Environment.Pull) // without them annotations are in another order
		}
		for _, line := range review.Annotations(report.Problems, changed) {
			fmt.Fprintln(p.Terminal.Stdout, line)
		}
	}
	errs := []error{
		p.Environment.writeOutputs(report.Outputs()),
		p.Environment.writeSummary(report.Summary),
	}
	if p.Files.Quality != "" {
		errs = append(errs, writeQuality(p.Files.Quality, report.Problems))
	}
	if p.Files.Comment != "" {
		errs = append(errs, writeText(p.Files.Comment, report.Comment()))
	}
	p.say(ctx, client, report)
	return errors.Join(errs...)
}

// say comments on the pull request and sets the commit's status. A forge that does not take
// them fails no plan: the summary and the log have the same.
func (p *Planner) say(ctx context.Context, client Client, report *review.Report) {
	e := &p.Environment
	wants := p.Comment != CommentNever && e.Pull != 0
	switch {
	case e.Fork != OriginHere || client == nil && !wants:
		return
	case client == nil:
		e.warn(p.Terminal, fmt.Errorf("pull request %d gets no comment: %w", e.Pull, e.unconnected()))
		return
	}
	if wants {
		choice, err := (&post{forge: client, pull: e.Pull, wanted: review.Wanted{
			Marker: report.Marker(), Body: report.Comment(),
			Adds: p.Comment == CommentAlways || report.Outcome() != review.OutcomeUnchanged,
		}}).write(ctx)
		if err != nil {
			e.warn(p.Terminal, fmt.Errorf("pull request %d gets no comment: %w", e.Pull, err))
		} else {
			fmt.Fprintln(p.Terminal.Stdout, told(e.Pull, choice))
		}
	}
	if p.Status && e.Run.Commit != "" {
		if err := client.SetStatus(ctx, e.Run.Commit, statusOf(report)); err != nil {
			e.warn(p.Terminal, err)
		}
	}
}

// statusOf is the commit status of a report.
func statusOf(report *review.Report) forge.Status {
	s := forge.Status{Context: "fray/plan: " + report.Target.String(), State: forge.StateSuccess, Description: report.Line(), URL: report.Run.URL}
	if report.Outcome().Failed() {
		s.State = forge.StateFailure
	}
	return s
}

// told is what became of a comment, for the log.
func told(pull int, c review.Choice) string {
	switch c.Action {
	case review.Create:
		return fmt.Sprintf("Commented on pull request %d.", pull)
	case review.Edit:
		return fmt.Sprintf("Edited the comment of pull request %d.", pull)
	case review.Leave:
	}
	return fmt.Sprintf("The comments of pull request %d stay as they are: %s.", pull, c.Because)
}
