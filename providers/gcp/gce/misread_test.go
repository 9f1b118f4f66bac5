package gce

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/engine"
)

// A list of which a part cannot be what the service answered is an error: the slices that it
// leaves out would count as gone.
func TestDamagedListsAreErrors(t *testing.T) {
	const instances, groups, templates = "/aggregated/instances", "/aggregated/instanceGroupManagers", "/global/instanceTemplates"
	for _, test := range []struct{ name, path, body string }{
		{"a zone that is null", instances, `{"items":{"zones/us-west4-a":null}}`},
		{"an instance that is null", instances, `{"items":{"zones/us-west4-a":{"instances":[null]}}}`},
		{"an instance without a name", instances, `{"items":{"zones/us-west4-a":{"instances":[{"status":"RUNNING"}]}}}`},
		{"an answer that is null", instances, `null`},
		{"groups of a zone that is null", groups, `{"items":{"zones/us-west4-a":null}}`},
		{"a group without a name", groups, `{"items":{"zones/us-west4-a":{"instanceGroupManagers":[{}]}}}`},
		{"a template that is null", templates, `{"items":[null]}`},
		{"templates on a page that is partial and has none", templates, `{"warning":{"code":"UNREACHABLE"}}`},
		{"nothing wrong", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := `{"kind":"a list"}`
				if r.URL.Path == "/compute/v1/projects/p"+test.path {
					body = test.body
				}
				if _, err := io.WriteString(w, body); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			e, err := New(t.Context(), engine.Config{Project: "p", Endpoint: server.URL, Now: time.Now, Backoff: time.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close() }()
			if listed, err := e.List(t.Context(), "stack-a"); (err == nil) != (test.path == "") {
				t.Errorf("listed %+v, %v", listed, err)
			}
		})
	}
}
