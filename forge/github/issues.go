package github

import (
	"context"
	"fmt"

	"github.com/google/go-github/v93/github"

	"github.com/fray-ml/fray/forge"
)

// Issues are the open issues with a label, the oldest first.
func (c *Client) Issues(ctx context.Context, label string) ([]forge.Issue, error) {
	found, err := all(ctx, c, "list the issues with label "+label, func(ctx context.Context, o github.ListOptions) ([]*github.Issue, *github.Response, error) {
		return c.api.Issues.ListByRepo(ctx, c.owner, c.name, &github.IssueListByRepoOptions{
			State: "open", Labels: []string{label}, Sort: "created", Direction: "asc", ListOptions: o,
		})
	})
	var out []forge.Issue
	for _, issue := range found {
		if !issue.IsPullRequest() {
			out = append(out, issueOf(issue))
		}
	}
	return out, err
}

func issueOf(i *github.Issue) forge.Issue {
	return forge.Issue{Number: i.GetNumber(), Author: i.GetUser().GetLogin(), Title: i.GetTitle(), Body: i.GetBody(), URL: i.GetHTMLURL()}
}

// CreateIssue opens an issue. It is not repeated where its outcome is not known.
func (c *Client) CreateIssue(ctx context.Context, label string, issue forge.Issue) (forge.Issue, error) {
	made, _, err := c.api.Issues.Create(ctx, c.owner, c.name, github.CreateIssueRequest{Title: issue.Title, Body: &issue.Body, Labels: []string{label}})
	if err != nil {
		return forge.Issue{}, asError("open an issue", err)
	}
	return issueOf(made), nil
}

// EditIssue replaces title and body of an issue.
func (c *Client) EditIssue(ctx context.Context, issue forge.Issue) error {
	return c.update(ctx, "edit", issue.Number, github.UpdateIssueRequest{Title: &issue.Title, Body: &issue.Body})
}

// CloseIssue closes an issue as done, with a last body.
func (c *Client) CloseIssue(ctx context.Context, issue forge.Issue) error {
	return c.update(ctx, "close", issue.Number, github.UpdateIssueRequest{Body: &issue.Body, State: new("closed"), StateReason: new("completed")})
}

func (c *Client) update(ctx context.Context, what string, number int, request github.UpdateIssueRequest) error {
	return c.read(ctx, fmt.Sprintf("%s issue %d", what, number), func(ctx context.Context) error { // which may be repeated
		_, _, err := c.api.Issues.Update(ctx, c.owner, c.name, number, request)
		return err
	})
}
