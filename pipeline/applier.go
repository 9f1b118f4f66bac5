package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/review"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// Applier applies a reviewed plan, and reports how it ended.
type Applier struct {
	Terminal    *terminal.Terminal
	Environment Environment
	Options     *rollout.Options
	Plan        string // the file of the plan
	Digest      string // SHA-256 of the plan that was reviewed; "": any plan is applied
	Comment     CommentMode
}

// Run does it. Its error is that of the apply.
func (a *Applier) Run(ctx context.Context) error {
	if a.Environment.Fork != OriginHere {
		return errors.New("this job runs for a pull request of a fork, or for one of which that is not known: it applies nothing")
	}
	found := &problems{env: a.Environment}
	a.Terminal.Diagnosed = found.diagnosed
	loud := quiet(a.Terminal, a.Environment.Commands)
	target, known, err := a.apply(ctx)
	loud()
	a.Terminal.Diagnosed = nil
	applied := &review.Applied{Target: target, Run: a.Environment.Run, Version: release.Version(), Outcome: outcomeOf(err), Code: codeOf(err)}
	if err != nil {
		applied.Text = a.Environment.Masked(textOf(err, found.found))
	}
	return errors.Join(err, a.publish(ctx, applied, known, found.found))
}

// errOther reports a plan that is not the one that was reviewed.
var errOther = errors.New("this is not the plan that was reviewed")

// apply checks the plan's file, and carries the plan out. The target is that of the plan once it is
// known, and before that the file.
func (a *Applier) apply(ctx context.Context) (target review.Target, known bool, err error) {
	target = review.Target{Dir: filepath.Base(a.Plan)}
	if a.Digest != "" {
		digest, err := digestOf(a.Plan)
		if err != nil {
			return target, false, err
		}
		if !strings.EqualFold(digest, a.Digest) {
			return target, false, fmt.Errorf("%w: the SHA-256 of %s is %s, and that of the reviewed one is %s", errOther, a.Plan, digest, a.Digest)
		}
	}
	saved, err := savedplan.Read(ctx, a.Plan)
	if err != nil {
		return target, false, err
	}
	target.Dir, target.Workspace = ".", saved.Workspace
	if len(saved.Paths) > 0 {
		target.Dir = a.Environment.within(directoryOf(saved.Paths[0]))
	}
	return target, true, (&rollout.Rollout{Terminal: a.Terminal, Options: a.Options}).ApplySaved(ctx, a.Plan)
}

// directoryOf is the directory of a path of a configuration, which may be a file.
func directoryOf(path string) string {
	if filepath.Ext(path) == ".hcl" {
		return filepath.Dir(path)
	}
	return path
}

func outcomeOf(err error) review.ApplyOutcome {
	var exit *terminal.Exit
	var held *store.HeldError
	switch {
	case err == nil:
		return review.ApplyComplete
	case errors.Is(err, errOther):
		return review.ApplyOther
	case savedplan.IsStale(err):
		return review.ApplyStale
	case errors.As(err, &held):
		return review.ApplyLocked
	case errors.As(err, &exit) && exit.Code == terminal.ExitPending:
		return review.ApplyPending
	}
	return review.ApplyFailed
}

func codeOf(err error) int {
	var exit *terminal.Exit
	switch {
	case err == nil:
		return terminal.ExitOK
	case errors.As(err, &exit):
		return exit.Code
	}
	return terminal.ExitError
}

// textOf is an error with the problems of the files that it stands for.
func textOf(err error, found []review.Problem) string {
	var lines []string
	if !errors.Is(err, terminal.ErrReported) {
		lines = append(lines, err.Error())
	}
	for _, p := range found {
		if p.Severity == review.SeverityError {
			lines = append(lines, strings.TrimPrefix(p.Place()+": "+p.Title+". "+p.Text, ": "))
		}
	}
	return strings.Join(lines, "\n")
}

// publish writes how it ended to the job, and to the pull request that the commit is of.
func (a *Applier) publish(ctx context.Context, applied *review.Applied, known bool, found []review.Problem) error {
	e := &a.Environment
	if e.Commands {
		for _, line := range review.Annotations(found, nil) {
			fmt.Fprintln(a.Terminal.Stdout, line)
		}
	}
	err := errors.Join(e.writeOutputs(applied.Outputs()), e.writeSummary(func(int) string { return applied.Summary() }))
	if a.Comment == CommentNever || e.Token == "" || !known {
		return err
	}
	client, unconnected := e.Connect(release.Version())
	if unconnected != nil {
		return err
	}
	pull, unknown := e.pullOf(ctx, client)
	if unknown != nil {
		e.warn(a.Terminal, unknown)
	}
	if pull == 0 {
		return err
	}
	marker := applied.Marker()
	choice, unsaid := (&post{forge: client, pull: pull, late: true, wanted: review.Wanted{Marker: marker, Body: applied.Comment(), Adds: true}}).write(ctx)
	if unsaid != nil {
		e.warn(a.Terminal, fmt.Errorf("pull request %d gets no comment: %w", pull, unsaid))
		return err
	}
	fmt.Fprintln(a.Terminal.Stdout, told(pull, choice))
	return err
}

// pullOf is the pull request of the event, or that which the commit is of; 0: there is none.
func (e Environment) pullOf(ctx context.Context, client Approvals) (int, error) {
	if e.Pull != 0 || e.Run.Commit == "" {
		return e.Pull, nil
	}
	pulls, err := client.PullsOf(ctx, e.Run.Commit)
	if err != nil || len(pulls) == 0 {
		return 0, err
	}
	return mergedBy(pulls, e.Run.Commit).Number, nil
}

// mergedBy is the pull request that a commit merged, else the first one.
func mergedBy(pulls []forge.Pull, commit string) forge.Pull {
	for _, pull := range pulls {
		if pull.Merge == commit {
			return pull
		}
	}
	return pulls[0]
}
