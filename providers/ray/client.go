package ray

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
)

// callTimeout bounds a call without a large body, uploadTimeout one with it.
const (
	callTimeout   = 60 * time.Second
	uploadTimeout = 10 * time.Minute
)

// maxAnswer bounds an answer, in bytes: a list of 10,000 jobs has some 30 MB.
const maxAnswer = 256 << 20

// client speaks to the dashboard of one cluster.
type client struct {
	address string // "http://127.0.0.1:8265", without a slash at its end
	token   tokenSource
	http    *http.Client
}

// StatusError is an answer of Ray's that is not 200.
type StatusError struct {
	Code int
	Text string // its last line, as Ray answers with tracebacks
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("Ray answers %d %s: %s", e.Code, http.StatusText(e.Code), e.Text)
}

func hasCode(err error, code int) bool {
	answer, ok := errors.AsType[*StatusError](err)
	return ok && answer.Code == code
}

// call makes a call with a JSON body, if in is not nil, and decodes the answer into out, if that is
// not nil.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.send(ctx, method, path, body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return failf(schema.ErrorUnavailable, "%s%s does not answer as Ray's dashboard does: %w", c.address, path, err)
	}
	return nil
}

// send makes one call and returns the body of the answer.
func (c *client) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	token, err := c.token.read()
	if err != nil {
		return nil, err
	}
	if token.value != "" {
		request.Header.Set("Authorization", "Bearer "+token.value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return answer, nil
	case http.StatusUnauthorized:
		return nil, failf(schema.ErrorPermission, "Ray at %s wants a token and got none: %s", c.address, tokenPlaces)
	case http.StatusForbidden:
		if token.value == "" {
			return nil, failf(schema.ErrorPermission, "Ray at %s wants a token and got none: %s", c.address, tokenPlaces)
		}
		return nil, failf(schema.ErrorPermission, "Ray at %s rejects the token of %s: it has to be that of the cluster's head node. %s", c.address, token.from, tokenPlaces)
	}
	return nil, &StatusError{Code: response.StatusCode, Text: lastLine(string(answer))}
}

// unreachable says what people can do about a cluster that does not answer.
func (c *client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // without the method and the address
	}
	return failf(schema.ErrorUnavailable,
		"no answer from Ray's dashboard at %s: %w; start a cluster with \"ray start --head\" (of ray[default]), or correct address in provider \"ray\"", c.address, err)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// parseAddress checks the address of a dashboard.
func parseAddress(address string) (string, error) {
	whole := address
	if !strings.Contains(whole, "://") {
		whole = "http://" + whole
	}
	u, err := url.Parse(whole)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("address %q is not that of Ray's dashboard: write it as http://HOST:8265, which ray start prints", address)
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), nil
}

// ParseAddress returns the address of a dashboard in one form, or what is wrong with it.
func ParseAddress(address string) (string, error) { return parseAddress(address) }

// kindError is an error whose kind is known where it arises.
type kindError struct {
	kind schema.ErrorKind
	err  error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

func failf(kind schema.ErrorKind, format string, args ...any) error {
	return &kindError{kind: kind, err: fmt.Errorf(format, args...)}
}
