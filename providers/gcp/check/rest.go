package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/client"
)

// checkREST reads single resources of Google's APIs by their paths.
type checkREST struct {
	client   *http.Client
	endpoint string // in place of every API's, without credentials; "": their own
}

func newCheckREST(ctx context.Context, endpoint string) (*checkREST, error) {
	if endpoint != "" {
		return &checkREST{client: &http.Client{}, endpoint: endpoint}, nil
	}
	const scope = "https://www.googleapis.com/auth/cloud-platform"
	transport, err := client.Authorized(context.WithoutCancel(ctx), client.API{Name: "compute", Scope: scope}, "")
	if err != nil {
		return nil, err
	}
	return &checkREST{client: &http.Client{Transport: transport}}, nil
}

// get reads what is at a path of an API, "compute", into a struct.
func (r *checkREST) get(ctx context.Context, service, path string, into any) error {
	return r.do(ctx, http.MethodGet, r.url(service, path), nil, into)
}

// post sends a body to a path of an API and reads the answer.
func (r *checkREST) post(ctx context.Context, service, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return r.do(ctx, http.MethodPost, r.url(service, path), bytes.NewReader(text), into)
}

func (r *checkREST) url(service, path string) string {
	if r.endpoint != "" {
		return r.endpoint + "/" + path
	}
	return "https://" + service + ".googleapis.com/" + path
}

func (r *checkREST) do(ctx context.Context, method, url string, body io.Reader, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	reply, err := r.client.Do(request)
	if err != nil {
		return apierror.Interrupted(ctx, err)
	}
	defer reply.Body.Close()
	if err := googleapi.CheckResponse(reply); err != nil {
		return err
	}
	if err := json.NewDecoder(reply.Body).Decode(into); err != nil {
		return fmt.Errorf("read what %s answered: %w", request.URL.Path, err)
	}
	return nil
}

// isMissing reports whether an API's own answer is that a resource is not
// there. A plain 404 is that of a server which does not know the path.
func isMissing(err error) bool {
	a, ok := apierror.AnswerOf(err)
	if !ok || a.Code != codes.NotFound {
		return false
	}
	return a.Message != "" && (a.Reason != "" || a.Has("not found", "NOT_FOUND", "was not found", "does not exist", "Unknown"))
}
