package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/retry"
)

// Config is where a project is, and who calls.
type Config struct {
	API       string // base URL; "": https://gitlab.com/api/v4
	Project   string // its number, or "group/name"
	Token     string
	Author    string            // login of the token's owner; "": it is asked for
	Version   string            // of fray, for the user agent
	Transport http.RoundTripper // nil: http.DefaultTransport
}

// DefaultAPI is the API of gitlab.com.
const DefaultAPI = "https://gitlab.com/api/v4"

// patience bounds one call.
const patience = 30 * time.Second

// Client calls the API of one project.
type Client struct {
	api     *gitlab.Client
	project string
	author  string
}

// New returns a client. It calls nothing yet.
func New(c Config) (*Client, error) {
	if c.Project == "" {
		return nil, errors.New("there is no project: want its number or GROUP/NAME")
	}
	if c.Token == "" {
		return nil, errors.New("there is no token for GitLab: set GITLAB_TOKEN to a project access token with the scope api (CI_JOB_TOKEN may not write notes)")
	}
	base := c.API
	if base == "" {
		base = DefaultAPI
	}
	home, err := url.Parse(base)
	if err != nil || home.Host == "" || home.Scheme != "https" && home.Scheme != "http" {
		return nil, fmt.Errorf("API of GitLab %q: want a URL such as %s", c.API, DefaultAPI)
	}
	transport := c.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	api, err := gitlab.NewClient(c.Token, gitlab.WithBaseURL(base), gitlab.WithUserAgent("fray/"+c.Version), gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}),
		gitlab.WithHTTPClient(&http.Client{Transport: transport, Timeout: patience, CheckRedirect: homeOnly(home)}))
	if err != nil {
		return nil, fmt.Errorf("set up the client of GitLab: %w", err)
	}
	return &Client{api: api, project: c.Project, author: c.Author}, nil
}

// homeOnly follows redirects only to the API's own host: headers with the token would go along.
func homeOnly(home *url.URL) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, before []*http.Request) error {
		if r.URL.Host != home.Host || r.URL.Scheme != home.Scheme || len(before) > 5 {
			return fmt.Errorf("the API redirects to %s://%s, which gets no token", r.URL.Scheme, r.URL.Host)
		}
		return nil
	}
}

// unlimited leaves limits to the answers of the server.
type unlimited struct{}

var _ gitlab.RateLimiter = unlimited{}

func (unlimited) Wait(ctx context.Context) error { return ctx.Err() }

// Author is the login with which this client writes.
func (c *Client) Author(ctx context.Context) (string, error) {
	if c.author != "" {
		return c.author, nil
	}
	var user *gitlab.User
	err := c.read(ctx, "ask who the token belongs to", func(ctx context.Context) (err error) {
		user, _, err = c.api.Users.CurrentUser(gitlab.WithContext(ctx))
		return err
	})
	if err != nil {
		return "", err
	}
	return user.Username, nil
}

// SetStatus sets a status of a commit, in place of that with the same context.
func (c *Client) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	const most = 255 // characters of a description
	o := &gitlab.SetCommitStatusOptions{State: stateOf(s.State), Name: &s.Context, Description: new(forge.OneLine(s.Description, most))}
	if s.URL != "" {
		o.TargetURL = &s.URL
	}
	err := c.read(ctx, "set status of commit "+commit, func(ctx context.Context) error { // which may be repeated
		_, _, err := c.api.Commits.SetCommitStatus(c.project, commit, o, gitlab.WithContext(ctx))
		return err
	})
	return err
}

func stateOf(s forge.State) gitlab.BuildStateValue {
	switch s {
	case forge.StatePending:
		return gitlab.Running
	case forge.StateSuccess:
		return gitlab.Success
	case forge.StateFailure, forge.StateError:
	}
	return gitlab.Failed
}

// read makes a call that may be repeated, until it succeeds.
func (c *Client) read(ctx context.Context, doing string, call func(ctx context.Context) error) error {
	return retry.Do(ctx, func(ctx context.Context) error { return asError(doing, call(ctx)) })
}

// pageSize is the largest page that GitLab gives.
const pageSize = 100

// all reads every page of a list.
func all[T any](ctx context.Context, c *Client, doing string, page func(context.Context, gitlab.ListOptions) ([]T, *gitlab.Response, error)) ([]T, error) {
	var items []T
	for next := int64(1); next != 0; {
		err := c.read(ctx, doing, func(ctx context.Context) error {
			found, answer, err := page(ctx, gitlab.ListOptions{Page: next, PerPage: pageSize})
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

// maxMessage bounds what is shown of a forge's message.
const maxMessage = 300

// asError is an error of the library as one of a forge.
func asError(doing string, err error) error {
	if err == nil {
		return nil
	}
	doing = "GitLab: " + doing
	var answered *gitlab.ErrorResponse
	var failed *url.Error
	switch {
	case errors.As(err, &answered):
		e := &forge.Error{Doing: doing, Cause: forge.CauseOf(answered.StatusCode), Status: answered.StatusCode, Message: forge.OneLine(answered.Message, maxMessage)}
		if e.Message == "" {
			e.Message = http.StatusText(e.Status)
		}
		if answered.Response != nil {
			if seconds, err := strconv.Atoi(answered.Response.Header.Get("Retry-After")); err == nil {
				e.After = time.Duration(max(0, seconds)) * time.Second
			}
		}
		return e
	case errors.Is(err, gitlab.ErrNotFound):
		return &forge.Error{Doing: doing, Cause: forge.NotFound, Status: http.StatusNotFound, Message: "not found"}
	case errors.As(err, &failed):
		return &forge.Error{Doing: doing, Cause: forge.Unavailable, Message: forge.OneLine(failed.Err.Error(), maxMessage)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &forge.Error{Doing: doing, Cause: forge.Invalid, Message: forge.OneLine(err.Error(), maxMessage)}
}
