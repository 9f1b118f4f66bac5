package pipeline

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/review"
	"github.com/fray-ml/fray/terminal"
)

// Statuses are those of commits.
type Statuses interface {
	SetStatus(ctx context.Context, commit string, s forge.Status) error
}

// Files lists what pull requests change.
type Files interface {
	Files(ctx context.Context, number int) ([]forge.File, error)
}

// Issues are those of a repository.
type Issues interface {
	Author(ctx context.Context) (string, error)
	Issues(ctx context.Context, label string) ([]forge.Issue, error)
	CreateIssue(ctx context.Context, label string, issue forge.Issue) (forge.Issue, error)
	EditIssue(ctx context.Context, issue forge.Issue) error
	CloseIssue(ctx context.Context, issue forge.Issue) error
}

// Approvals are what is known of the review of a commit.
type Approvals interface {
	PullsOf(ctx context.Context, commit string) ([]forge.Pull, error)
	Approvals(ctx context.Context, number int) ([]forge.Approval, error)
}

// unconnected is why there is no client.
func (e Environment) unconnected() error {
	_, err := e.Connect(release.Version())
	return err
}

// warn reports what could not be written to the forge.
func (e Environment) warn(a *terminal.Terminal, err error) {
	text := e.Masked(err.Error())
	if e.Commands {
		fmt.Fprintln(a.Stdout, review.Warning(text))
		return
	}
	a.Warn(text)
}

func writeText(path, text string) error { return durable.Replace(path, []byte(text), 0o644) }
