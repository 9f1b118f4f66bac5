package computeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"google.golang.org/api/googleapi"
)

// Client calls the API in one project. Each call is made once. An answer of the service
// that is an error is a [googleapi.Error].
type Client struct {
	http *http.Client
	root string // "https://compute.googleapis.com/compute/v1/projects/p"
}

// NewClient returns a client that calls the API below an endpoint,
// "https://compute.googleapis.com", through a transport that authorizes calls.
func NewClient(transport http.RoundTripper, endpoint, project string) *Client {
	return &Client{
		http: &http.Client{Transport: transport},
		root: strings.TrimSuffix(endpoint, "/") + "/compute/v1/projects/" + url.PathEscape(project),
	}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Path is that of a resource or a collection within the project.
type Path []string

// text is the path as part of an address. An empty part would make the path of a resource that
// of its collection.
func (p Path) text() (string, error) {
	var b strings.Builder
	for _, part := range p {
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("the path %q has the part %q, which names nothing", strings.Join(p, "/"), part)
		}
		b.WriteString("/" + url.PathEscape(part))
	}
	return b.String(), nil
}

// Query are the parameters of a call; those that are empty are left out.
type Query map[string]string

// Get reads a resource or a page of a list.
func Get[T any](ctx context.Context, c *Client, path Path, query Query) (*T, error) {
	return call[T](ctx, c, http.MethodGet, path, query, nil)
}

// Post calls a method that reads by POST.
func Post[T any](ctx context.Context, c *Client, path Path, query Query) (*T, error) {
	return call[T](ctx, c, http.MethodPost, path, query, nil)
}

// Change is a call that changes something.
type Change struct {
	Method    string // of HTTP
	Path      Path
	Query     Query
	Body      any    // nil: none
	RequestID string // a UUID, by which the service carries a call out once; "": none
}

// Begin asks for a change and returns the operation that makes it.
func (c *Client) Begin(ctx context.Context, change Change) (*Operation, error) {
	query := Query{"requestId": change.RequestID}
	maps.Copy(query, change.Query)
	return call[Operation](ctx, c, change.Method, change.Path, query, change.Body)
}

func call[T any](ctx context.Context, c *Client, method string, path Path, query Query, body any) (*T, error) {
	request, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	reply, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if err := googleapi.CheckResponse(reply); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	answer := new(T)
	if err := decode(text, answer); err != nil {
		return nil, fmt.Errorf("read what %s answered: %w", request.URL.Path, err)
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method string, path Path, query Query, body any) (*http.Request, error) {
	below, err := path.text()
	if err != nil {
		return nil, err
	}
	parameters := url.Values{"alt": {"json"}, "prettyPrint": {"false"}}
	for key, value := range query {
		if value != "" {
			parameters.Set(key, value)
		}
	}
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := jsonv2.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.root+below+"?"+parameters.Encode(), content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// decode reads an answer, strictly: one object, without names that stand twice. What is
// not one is not taken for a list of nothing.
func decode(text []byte, into any) error {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return errors.New("it is no JSON object")
	}
	return jsonv2.Unmarshal(text, into)
}
