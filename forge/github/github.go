package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v93/github"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/retry"
)

// Config is where a repository is, and who calls.
type Config struct {
	API        string // base URL; "": https://api.github.com
	Repository string // "owner/name"
	Token      string
	Author     string            // login of the token's owner; "": it is asked for
	Version    string            // of fray, for the user agent
	Transport  http.RoundTripper // nil: http.DefaultTransport
}

// DefaultAPI is the API of github.com.
const DefaultAPI = "https://api.github.com"

// actionsBot is the author of what the token of a job writes. That token may not ask who it is.
const actionsBot = "github-actions[bot]"

// patience bounds one call.
const patience = 30 * time.Second

// Client calls the API of one repository.
type Client struct {
	api         *github.Client
	owner, name string
	author      string
}

// New returns a client. It calls nothing yet.
func New(c Config) (*Client, error) {
	owner, name, ok := strings.Cut(c.Repository, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("repository %q: want OWNER/NAME", c.Repository)
	}
	if c.Token == "" {
		return nil, errors.New("there is no token for GitHub: set GITHUB_TOKEN, in a workflow with env: { GITHUB_TOKEN: ${{ github.token }} }")
	}
	base := strings.TrimSuffix(c.API, "/") + "/"
	if c.API == "" {
		base = DefaultAPI + "/"
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("API of GitHub %q: want a URL such as %s", c.API, DefaultAPI)
	}
	transport := c.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	api, err := github.NewClient(github.WithHTTPClient(&http.Client{Transport: transport, Timeout: patience}),
		github.WithURLs(&base, nil), github.WithAuthToken(c.Token), github.WithUserAgent("fray/"+c.Version))
	if err != nil {
		return nil, fmt.Errorf("set up the client of GitHub: %w", err)
	}
	return &Client{api: api, owner: owner, name: name, author: c.Author}, nil
}

// Author is the login with which this client writes.
func (c *Client) Author(ctx context.Context) (string, error) {
	if c.author != "" {
		return c.author, nil
	}
	var user *github.User
	err := c.read(ctx, "ask who the token belongs to", func(ctx context.Context) (err error) {
		user, _, err = c.api.Users.Get(ctx, "")
		return err
	})
	switch {
	case forge.IsCause(err, forge.Denied), forge.IsCause(err, forge.NotFound):
		return actionsBot, nil
	case err != nil:
		return "", err
	}
	return user.GetLogin(), nil
}

// SetStatus sets a status of a commit, in place of that with the same context.
func (c *Client) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	const most = 140 // characters of a description
	status := github.RepoStatus{State: new(string(s.State)), Context: &s.Context, Description: new(forge.OneLine(s.Description, most))}
	if s.URL != "" {
		status.TargetURL = &s.URL
	}
	return c.read(ctx, "set status of commit "+commit, func(ctx context.Context) error { // which may be repeated
		_, _, err := c.api.Repositories.CreateStatus(ctx, c.owner, c.name, commit, status)
		return err
	})
}

// read makes a call that may be repeated, until it succeeds.
func (c *Client) read(ctx context.Context, doing string, call func(ctx context.Context) error) error {
	return retry.Do(ctx, func(ctx context.Context) error { return asError(doing, call(ctx)) })
}

// pageSize is the largest page that GitHub gives.
const pageSize = 100

// all reads every page of a list.
func all[T any](ctx context.Context, c *Client, doing string, page func(context.Context, github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	var items []T
	for next := 1; next != 0; {
		err := c.read(ctx, doing, func(ctx context.Context) error {
			found, answer, err := page(ctx, github.ListOptions{Page: next, PerPage: pageSize})
			if err == nil {
				items, next = append(items, found...), answer.NextPage
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

// asError is an error of the library as one of a forge.
func asError(doing string, err error) error {
	if err == nil {
		return nil
	}
	doing = "GitHub: " + doing
	var limited *github.RateLimitError
	var abused *github.AbuseRateLimitError
	var answered *github.ErrorResponse
	var failed *url.Error
	switch {
	case errors.As(err, &limited):
		return &forge.Error{Doing: doing, Cause: forge.Limited, Status: statusOf(limited.Response), After: until(limited.Rate.Reset.Time), Message: forge.OneLine(limited.Message, maxMessage)}
	case errors.As(err, &abused):
		e := &forge.Error{Doing: doing, Cause: forge.Limited, Status: statusOf(abused.Response), Message: forge.OneLine(abused.Message, maxMessage)}
		if abused.RetryAfter != nil {
			e.After = *abused.RetryAfter
		}
		return e
	case errors.As(err, &answered):
		return answerError(doing, answered)
	case errors.As(err, &failed):
		return &forge.Error{Doing: doing, Cause: forge.Unavailable, Message: forge.OneLine(failed.Err.Error(), maxMessage)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &forge.Error{Doing: doing, Cause: forge.Invalid, Message: forge.OneLine(err.Error(), maxMessage)}
}

// maxMessage bounds what is shown of a forge's message.
const maxMessage = 300

// answerError is the error of an answer: some limits have the status of a missing permission.
func answerError(doing string, a *github.ErrorResponse) *forge.Error {
	e := &forge.Error{Doing: doing, Status: statusOf(a.Response), Message: a.Message}
	e.Cause = forge.CauseOf(e.Status)
	if after := a.Response.Header.Get("Retry-After"); after != "" {
		if seconds, err := time.ParseDuration(after + "s"); err == nil {
			e.After = max(0, seconds)
			if e.Cause == forge.Denied {
				e.Cause = forge.Limited
			}
		}
	}
	for _, detail := range a.Errors {
		e.Message += "; " + strings.Join(strings.Fields(detail.Resource+" "+detail.Field+" "+detail.Code+" "+detail.Message), " ")
	}
	if e.Message == "" {
		e.Message = http.StatusText(e.Status)
	}
	e.Message = forge.OneLine(e.Message, maxMessage)
	return e
}

func statusOf(r *http.Response) int {
	if r == nil {
		return 0
	}
	return r.StatusCode
}

// until is the time until a limit ends, at least a second.
func until(reset time.Time) time.Duration { return max(time.Second, time.Until(reset)) }
