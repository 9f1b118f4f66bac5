package gitlab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	versionPath = "api/v4/"
	maxAnswer   = 64 << 20 // bytes of an answer that are read
	maxFailure  = 1 << 20  // bytes of an answer that is an error
)

// api makes calls of the REST API. GitLab's own library knows all of its thousand calls by
// reflection and takes half a millisecond for that in each process, before main begins.
type api struct {
	base  string // ends with versionPath
	token string
	agent string
	http  *http.Client
}

// call is one of the API: with a body a JSON object, without one its values are in the query.
type call struct {
	method string
	path   string // below the base, escaped
	query  url.Values
	body   any // nil: none
}

// failed is an answer that is no success.
type failed struct {
	status     int
	retryAfter string // a header
	message    string
}

func (f *failed) Error() string { return fmt.Sprintf("HTTP %d: %s", f.status, f.message) }

// do makes a call and reads its answer into out, unless that is nil. It returns the number of the
// next page, 0 if there is none.
func (a *api) do(ctx context.Context, c call, out any) (next int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var body io.Reader
	if c.body != nil {
		data, err := json.Marshal(c.body)
		if err != nil {
			return 0, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	target := a.base + c.path
	if len(c.query) > 0 {
		target += "?" + c.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, c.method, target, body)
	if err != nil {
		return 0, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Private-Token", a.token)
	request.Header.Set("User-Agent", a.agent)
	request.Header.Set("Accept", "application/json")
	if c.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		data, _ := io.ReadAll(io.LimitReader(response.Body, maxFailure))
		return 0, &failed{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), message: messageOf(data)}
	}
	if out != nil {
		if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(out); err != nil {
			return 0, fmt.Errorf("read the answer: %w", err)
		}
	}
	next, _ = strconv.Atoi(response.Header.Get("X-Next-Page"))
	return next, nil
}

// messageOf is what an answer that is an error states: of an object, its values behind their names.
func messageOf(body []byte) string {
	var answered any
	if err := json.Unmarshal(body, &answered); err != nil {
		return strings.TrimSpace(string(body))
	}
	return textOf(answered)
}

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		texts := make([]string, 0, len(v))
		for _, each := range v {
			texts = append(texts, textOf(each))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case map[string]any:
		texts := make([]string, 0, len(v))
		for name, each := range v {
			texts = append(texts, "{"+name+": "+textOf(each)+"}")
		}
		slices.Sort(texts)
		return strings.Join(texts, ", ")
	}
	return fmt.Sprint(v)
}

// escaped is one segment of a path. A dot in it is escaped too: some servers take what follows it
// for the format of the answer.
func escaped(segment string) string { return strings.ReplaceAll(url.PathEscape(segment), ".", "%2E") }
