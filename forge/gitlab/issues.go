package gitlab

import (
	"context"
	"fmt"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/fray-ml/fray/forge"
)

// Issues are the open issues with a label, the oldest first.
func (c *Client) Issues(ctx context.Context, label string) ([]forge.Issue, error) {
	found, err := all(ctx, c, "list the issues with label "+label, func(ctx context.Context, o gitlab.ListOptions) ([]*gitlab.Issue, *gitlab.Response, error) {
		by := &gitlab.ListProjectIssuesOptions{ListOptions: o, State: new("opened"), Labels: &gitlab.LabelOptions{label}, OrderBy: new("created_at"), Sort: new("asc")}
		return c.api.Issues.ListProjectIssues(c.project, by, gitlab.WithContext(ctx))
	})
	var out []forge.Issue
	for _, issue := range found {
		out = append(out, issueOf(issue))
	}
	return out, err
}

func issueOf(i *gitlab.Issue) forge.Issue {
	out := forge.Issue{Number: int(i.IID), Title: i.Title, Body: i.Description, URL: i.WebURL}
	if i.Author != nil {
		out.Author = i.Author.Username
	}
	return out
}

// CreateIssue opens an issue. It is not repeated where its outcome is not known.
func (c *Client) CreateIssue(ctx context.Context, label string, issue forge.Issue) (forge.Issue, error) {
	made, _, err := c.api.Issues.CreateIssue(c.project, &gitlab.CreateIssueOptions{Title: &issue.Title, Description: &issue.Body, Labels: &gitlab.LabelOptions{label}}, gitlab.WithContext(ctx))
	if err != nil {
		return forge.Issue{}, asError("open an issue", err)
	}
	return issueOf(made), nil
}

// EditIssue replaces title and body of an issue.
func (c *Client) EditIssue(ctx context.Context, issue forge.Issue) error {
	return c.update(ctx, "edit", issue.Number, &gitlab.UpdateIssueOptions{Title: &issue.Title, Description: &issue.Body})
}

// CloseIssue closes an issue, with a last body.
func (c *Client) CloseIssue(ctx context.Context, issue forge.Issue) error {
	return c.update(ctx, "close", issue.Number, &gitlab.UpdateIssueOptions{Description: &issue.Body, StateEvent: new("close")})
}

func (c *Client) update(ctx context.Context, what string, number int, o *gitlab.UpdateIssueOptions) error {
	return c.read(ctx, fmt.Sprintf("%s issue %d", what, number), func(ctx context.Context) error { // which may be repeated
		_, _, err := c.api.Issues.UpdateIssue(c.project, int64(number), o, gitlab.WithContext(ctx))
		return err
	})
}
