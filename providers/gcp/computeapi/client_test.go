package computeapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
)

// answering is a client of a service that answers each call with this, and what it was asked.
func answering(t *testing.T, status int, body string) (*computeapi.Client, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+r.URL.Query().Get("requestId")+" "+string(sent))
		w.WriteHeader(status)
		if _, err := io.WriteString(w, body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return computeapi.NewClient(http.DefaultTransport, server.URL, "p"), &asked
}

// What cannot be the answer of the service is an error, and no list of nothing.
func TestAnswersThatAreNoAnswer(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":            "",
		"null":               "null",
		"a list":             "[]",
		"a page for people":  "<html>captive portal</html>",
		"cut short":          `{"items":{"zones/a-b1-c":{"instances":[{"name":"one"}]}`,
		"two values":         `{"items":{}}{"items":{}}`,
		"a name twice":       `{"items":{"zones/a-b1-c":{"instances":[{"name":"one"}]}},"items":{}}`,
		"a scope twice":      `{"items":{"zones/a-b1-c":{"instances":[{"name":"one"}]},"zones/a-b1-c":{}}}`,
		"a list of another":  `{"items":[]}`,
		"a number as a name": `{"items":{"zones/a-b1-c":{"instances":[{"name":1}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := answering(t, http.StatusOK, body)
			page, err := computeapi.Get[computeapi.InstanceAggregatedList](t.Context(), client, computeapi.Path{"aggregated", "instances"}, nil)
			if err == nil {
				t.Errorf("it was read as %+v", page)
			}
		})
	}
}

func TestErrorsOfTheServiceAreTyped(t *testing.T) {
	client, _ := answering(t, http.StatusForbidden, `{"error":{"code":403,"message":"no","errors":[{"reason":"quotaExceeded"}]}}`)
	_, err := computeapi.Get[computeapi.Instance](t.Context(), client, computeapi.Path{"zones", "z", "instances", "one"}, nil)
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok || answer.Code != http.StatusForbidden || answer.Message != "no" || len(answer.Errors) != 1 || answer.Errors[0].Reason != "quotaExceeded" {
		t.Errorf("got %#v", err)
	}
}

func TestCallsOnTheWire(t *testing.T) {
	client, asked := answering(t, http.StatusOK, `{"name":"operation-1","status":"DONE"}`)
	op, err := client.Begin(t.Context(), computeapi.Change{
		Method: http.MethodPatch, Path: computeapi.Path{"zones", "z", "instanceGroupManagers", "a/b?c"}, RequestID: "id",
		Body: computeapi.InstanceGroupManager{Fingerprint: "f"},
	})
	if err != nil || op.Name != "operation-1" || op.Status != computeapi.OperationDone {
		t.Fatalf("got %+v, %v", op, err)
	}
	// A patch with a size would have the group lose its machines.
	want := `PATCH /compute/v1/projects/p/zones/z/instanceGroupManagers/a%2Fb%3Fc id {"fingerprint":"f"}`
	if len(*asked) != 1 || (*asked)[0] != want {
		t.Errorf("asked %q, want %q", *asked, want)
	}
}

// The path of a resource without a name is that of all.
func TestPathsWithoutANameAreNotCalled(t *testing.T) {
	client, asked := answering(t, http.StatusOK, `{}`)
	for _, name := range []string{"", ".", ".."} {
		_, err := client.Begin(t.Context(), computeapi.Change{Method: http.MethodDelete, Path: computeapi.Path{"zones", "z", "instances", name}})
		if err == nil || !strings.Contains(err.Error(), "names nothing") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if len(*asked) > 0 {
		t.Errorf("the service was asked %q", *asked)
	}
}
