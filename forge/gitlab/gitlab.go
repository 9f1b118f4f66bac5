package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

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
	api     *api
	project string // the path of its calls
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
	path := strings.TrimSuffix(home.String(), "/") + "/"
	if !strings.HasSuffix(path, versionPath) {
		path += versionPath
	}
	client := &http.Client{Transport: transport, Timeout: patience, CheckRedirect: homeOnly(home)}
	return &Client{
		api:     &api{base: path, token: c.Token, agent: "fray/" + c.Version, http: client},
		project: "projects/" + escaped(c.Project) + "/", author: c.Author,
	}, nil
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

// Author is the login with which this client writes.
func (c *Client) Author(ctx context.Context) (string, error) {
	if c.author != "" {
		return c.author, nil
	}
	var owner user
	err := c.repeat(ctx, "ask who the token belongs to", call{method: http.MethodGet, path: "user"}, &owner)
	return owner.Username, err
}

// SetStatus sets a status of a commit, in place of that with the same context.
func (c *Client) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	const most = 255 // characters of a description
	set := struct {
		State       string `json:"state"`
		Name        string `json:"name"`
		Description string `json:"description"`
		TargetURL   string `json:"target_url,omitempty"`
	}{stateOf(s.State), s.Context, forge.OneLine(s.Description, most), s.URL}
	// It may be repeated.
	return c.repeat(ctx, "set status of commit "+commit, call{method: http.MethodPost, path: c.project + "statuses/" + escaped(commit), body: set}, nil)
}

func stateOf(s forge.State) string {
	switch s {
	case forge.StatePending:
		return "running"
	case forge.StateSuccess:
		return "success"
	case forge.StateFailure, forge.StateError:
	}
	return "failed"
}

// user is an account.
type user struct {
	Username string `json:"username"`
}

// once makes a call that is not repeated where its outcome is not known.
func (c *Client) once(ctx context.Context, doing string, one call, out any) error {
	_, err := c.api.do(ctx, one, out)
	return asError(doing, err)
}

// repeat makes a call that may be repeated, until it succeeds.
func (c *Client) repeat(ctx context.Context, doing string, one call, out any) error {
	return retry.Do(ctx, func(ctx context.Context) error { return c.once(ctx, doing, one, out) })
}

// pageSize is the largest page that GitLab gives.
const pageSize = 100

// all reads every page of a list.
func all[T any](ctx context.Context, c *Client, doing, path string, query url.Values) ([]T, error) {
	var items []T
	if query == nil {
		query = url.Values{}
	}
	query.Set("per_page", strconv.Itoa(pageSize))
	for next := 1; next != 0; {
		query.Set("page", strconv.Itoa(next))
		err := retry.Do(ctx, func(ctx context.Context) error {
			var found []T
			following, err := c.api.do(ctx, call{method: http.MethodGet, path: path, query: query}, &found)
			if err == nil {
				items, next = append(items, found...), following
			}
			return asError(doing, err)
		})
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

// maxMessage bounds what is shown of a forge's message.
const maxMessage = 300

// asError is an error of a call as one of a forge.
func asError(doing string, err error) error {
	if err == nil {
		return nil
	}
	doing = "GitLab: " + doing
	var answered *failed
	var unsent *url.Error
	switch {
	case errors.As(err, &answered):
		e := &forge.Error{Doing: doing, Cause: forge.CauseOf(answered.status), Status: answered.status, Message: forge.OneLine(answered.message, maxMessage)}
		if e.Status == http.StatusNotFound {
			e.Message = "not found"
		} else if e.Message == "" {
			e.Message = http.StatusText(e.Status)
		}
		if seconds, err := strconv.Atoi(answered.retryAfter); err == nil {
			e.After = time.Duration(max(0, seconds)) * time.Second
		}
		return e
	case errors.As(err, &unsent):
		return &forge.Error{Doing: doing, Cause: forge.Unavailable, Message: forge.OneLine(unsent.Err.Error(), maxMessage)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &forge.Error{Doing: doing, Cause: forge.Invalid, Message: forge.OneLine(err.Error(), maxMessage)}
}
