package github

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-github/v93/github"

	"github.com/fray-ml/fray/forge"
)

// Pull is a pull request.
func (c *Client) Pull(ctx context.Context, number int) (forge.Pull, error) {
	var found *github.PullRequest
	err := c.read(ctx, fmt.Sprintf("read pull request %d", number), func(ctx context.Context) (err error) {
		found, _, err = c.api.PullRequests.Get(ctx, c.owner, c.name, number)
		return err
	})
	if err == nil && found == nil {
		err = &forge.Error{Doing: fmt.Sprintf("GitHub: read pull request %d", number), Cause: forge.Unavailable, Message: "the answer is empty"}
	}
	if err != nil {
		return forge.Pull{}, err
	}
	return pullOf(found), nil
}

func pullOf(p *github.PullRequest) forge.Pull {
	out := forge.Pull{Number: p.GetNumber(), Head: p.GetHead().GetSHA(), Merged: p.GetMerged() || p.MergedAt != nil}
	// The repository of a head is absent once that fork has been deleted.
	home := p.GetHead().GetRepo().GetFullName()
	out.Fork = home == "" || home != p.GetBase().GetRepo().GetFullName()
	if out.Merged {
		out.Merge = p.GetMergeCommitSHA()
	}
	return out
}

// PullsOf are the pull requests that have a commit, or that it merged.
func (c *Client) PullsOf(ctx context.Context, commit string) ([]forge.Pull, error) {
	found, err := all(ctx, c, "find the pull requests of commit "+commit, func(ctx context.Context, o github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
		return c.api.PullRequests.ListPullRequestsWithCommit(ctx, c.owner, c.name, commit, &o)
	})
	var out []forge.Pull
	for _, p := range found {
		out = append(out, pullOf(p))
	}
	return out, err
}

// Files are the files that a pull request changes, without those that it removes.
func (c *Client) Files(ctx context.Context, number int) ([]forge.File, error) {
	found, err := all(ctx, c, fmt.Sprintf("list the files of pull request %d", number), func(ctx context.Context, o github.ListOptions) ([]*github.CommitFile, *github.Response, error) {
		return c.api.PullRequests.ListFiles(ctx, c.owner, c.name, number, &o)
	})
	var out []forge.File
	for _, f := range found {
		if f.GetStatus() != "removed" {
			out = append(out, forge.File{Path: f.GetFilename(), Lines: forge.LinesOf(f.GetPatch())})
		}
	}
	return out, err
}

// Approvals are the approvals that hold: of each reviewer the last review counts, unless it
// only comments.
func (c *Client) Approvals(ctx context.Context, number int) ([]forge.Approval, error) {
	reviews, err := all(ctx, c, fmt.Sprintf("list the reviews of pull request %d", number), func(ctx context.Context, o github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
		return c.api.PullRequests.ListReviews(ctx, c.owner, c.name, number, &o)
	})
	if err != nil {
		return nil, err
	}
	last := map[string]string{} // what a reviewer approved
	for _, r := range reviews { // in their order
		switch r.GetState() {
		case "APPROVED":
			last[r.GetUser().GetLogin()] = r.GetCommitID()
		case "CHANGES_REQUESTED", "DISMISSED":
			delete(last, r.GetUser().GetLogin())
		}
	}
	var out []forge.Approval
	for _, by := range slices.Sorted(maps.Keys(last)) {
		out = append(out, forge.Approval{By: by, Commit: last[by]})
	}
	return out, nil
}

// Comments are the comments of a pull request, the oldest first.
func (c *Client) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	found, err := all(ctx, c, fmt.Sprintf("list the comments of pull request %d", number), func(ctx context.Context, o github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
		return c.api.Issues.ListComments(ctx, c.owner, c.name, number, &github.IssueListCommentsOptions{ListOptions: o})
	})
	var out []forge.Comment
	for _, comment := range found {
		out = append(out, forge.Comment{ID: comment.GetID(), Author: comment.GetUser().GetLogin(), Body: comment.GetBody()})
	}
	return out, err
}

// CreateComment adds a comment to a pull request. It is not repeated where its outcome is not known.
func (c *Client) CreateComment(ctx context.Context, number int, body string) error {
	_, _, err := c.api.Issues.CreateComment(ctx, c.owner, c.name, number, github.IssueCommentRequest{Body: body})
	return asError(fmt.Sprintf("comment on pull request %d", number), err)
}

// EditComment replaces the body of a comment. It is not repeated: what is written may be out of date by then.
func (c *Client) EditComment(ctx context.Context, number int, id int64, body string) error {
	_, _, err := c.api.Issues.UpdateComment(ctx, c.owner, c.name, id, github.IssueCommentRequest{Body: body})
	return asError(fmt.Sprintf("edit comment %d of pull request %d", id, number), err)
}

// DeleteComment removes a comment; one that is gone is no error.
func (c *Client) DeleteComment(ctx context.Context, number int, id int64) error {
	err := c.read(ctx, fmt.Sprintf("delete comment %d of pull request %d", id, number), func(ctx context.Context) error {
		_, err := c.api.Issues.DeleteComment(ctx, c.owner, c.name, id)
		return err
	})
	if forge.IsCause(err, forge.NotFound) {
		return nil
	}
	return err
}
