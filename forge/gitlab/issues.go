package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fray-ml/fray/forge"
)

// issue is one as GitLab has it.
type issue struct {
	IID         int    `json:"iid"`
	Title       string `json:"title"`
	Description string `json:"description"`
	WebURL      string `json:"web_url"`
	Author      *user  `json:"author"`
}

func (i issue) forge() forge.Issue {
	out := forge.Issue{Number: i.IID, Title: i.Title, Body: i.Description, URL: i.WebURL}
	if i.Author != nil {
		out.Author = i.Author.Username
	}
	return out
}

// issueChange is what is set of an issue.
type issueChange struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	Labels      string `json:"labels,omitempty"`
	StateEvent  string `json:"state_event,omitempty"`
}

// Issues are the open issues with a label, the oldest first.
func (c *Client) Issues(ctx context.Context, label string) ([]forge.Issue, error) {
	found, err := all[issue](ctx, c, "list the issues with label "+label, c.project+"issues",
		url.Values{"state": {"opened"}, "labels": {label}, "order_by": {"created_at"}, "sort": {"asc"}})
	var out []forge.Issue
	for _, i := range found {
		out = append(out, i.forge())
	}
	return out, err
}

// CreateIssue opens an issue. It is not repeated where its outcome is not known.
func (c *Client) CreateIssue(ctx context.Context, label string, wanted forge.Issue) (forge.Issue, error) {
	var made issue
	change := issueChange{Title: wanted.Title, Description: wanted.Body, Labels: label}
	if err := c.once(ctx, "open an issue", call{method: http.MethodPost, path: c.project + "issues", body: change}, &made); err != nil {
		return forge.Issue{}, err
	}
	return made.forge(), nil
}

// EditIssue replaces title and body of an issue.
func (c *Client) EditIssue(ctx context.Context, wanted forge.Issue) error {
	return c.update(ctx, "edit", wanted.Number, issueChange{Title: wanted.Title, Description: wanted.Body})
}

// CloseIssue closes an issue, with a last body.
func (c *Client) CloseIssue(ctx context.Context, wanted forge.Issue) error {
	return c.update(ctx, "close", wanted.Number, issueChange{Description: wanted.Body, StateEvent: "close"})
}

// update changes an issue, which may be repeated.
func (c *Client) update(ctx context.Context, what string, number int, change issueChange) error {
	return c.repeat(ctx, fmt.Sprintf("%s issue %d", what, number), call{method: http.MethodPut, path: c.project + "issues/" + strconv.Itoa(number), body: change}, nil)
}
