package metadata

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func serve(t *testing.T, f Facts) (*Server, func(path string, header ...string) (int, string, string)) {
	t.Helper()
	s := New(f)
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return s, func(path string, header ...string) (int, string, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Metadata-Flavor", "Google")
		for i := 0; i+1 < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(body), reply.Header.Get("ETag")
	}
}

func TestValues(t *testing.T) {
	_, get := serve(t, Facts{
		ID: 7, Name: "vm", Project: "acme", Zone: "us-west4-a", Address: "10.0.0.1", MachineType: "n2-standard-8",
		Account: "me@acme", Attributes: map[string]string{"a": "1", "b": ""},
	})
	for path, want := range map[string]string{
		"/":                                 "computeMetadata/\n",
		"/computeMetadata/v1/instance/id":   "7",
		"/computeMetadata/v1/instance/zone": "projects/1/zones/us-west4-a",
		"/computeMetadata/v1/instance/attributes/a":                     "1",
		"/computeMetadata/v1/instance/attributes/b":                     "",
		"/computeMetadata/v1/instance/attributes/":                      "a\nb\n",
		"/computeMetadata/v1/instance/preempted":                        "FALSE",
		"/computeMetadata/v1/instance/maintenance-event":                "NONE",
		"/computeMetadata/v1/instance/service-accounts/default/email":   "me@acme",
		"/computeMetadata/v1/instance/service-accounts/":                "default/\nme@acme/\n",
		"/computeMetadata/v1/project/project-id":                        "acme",
		"/computeMetadata/v1/instance/service-accounts/me@acme/aliases": "default",
	} {
		if code, got, _ := get(path); code != http.StatusOK || got != want {
			t.Errorf("%s is %d %q, want %q", path, code, got, want)
		}
	}
	if code, got, _ := get("/computeMetadata/v1/instance/service-accounts/default/token"); code != http.StatusOK || !strings.Contains(got, `"access_token":"ya29.`) {
		t.Errorf("the token is %d %q", code, got)
	}
	for path, want := range map[string]int{
		"/computeMetadata/v1/instance/attributes/c":                 http.StatusNotFound,
		"/computeMetadata/v1/instance/service-accounts/other/token": http.StatusNotFound,
		"/computeMetadata/v1/instance/nothing/":                     http.StatusNotFound,
		"/elsewhere":                                                http.StatusNotFound,
	} {
		if code, _, _ := get(path); code != want {
			t.Errorf("%s answers %d, want %d", path, code, want)
		}
	}
	for _, header := range [][]string{{"Metadata-Flavor", ""}, {"X-Forwarded-For", "1.2.3.4"}} {
		if code, _, _ := get("/computeMetadata/v1/instance/id", header...); code != http.StatusForbidden {
			t.Errorf("with %v it answers %d, want 403", header, code)
		}
	}
}

func TestWaiting(t *testing.T) {
	s, get := serve(t, Facts{})
	const path = "/computeMetadata/v1/instance/preempted"
	_, _, etag := get(path)
	answered := make(chan string)
	go func() {
		_, body, _ := get(path + "?wait_for_change=true&last_etag=" + etag)
		answered <- body
	}()
	s.Maintain("TERMINATE_ON_HOST_MAINTENANCE") // another value
	if code, body, same := get(path + "?wait_for_change=true&timeout_sec=1&last_etag=" + etag); code != http.StatusOK || body != "FALSE" || same != etag {
		t.Errorf("after its timeout it answers %d %q %s", code, body, same)
	}
	select {
	case got := <-answered:
		t.Errorf("a change of another value answered %q", got)
	default:
	}
	s.Preempt()
	if got := <-answered; got != "TRUE" {
		t.Errorf("the change answered %q, want TRUE", got)
	}
	if _, body, after := get(path + "?wait_for_change=true&last_etag=" + etag); body != "TRUE" || after == etag {
		t.Errorf("what has changed already answers %q with etag %s", body, after)
	}
	go func() {
		code, _, _ := get(path + "?wait_for_change=true")
		answered <- http.StatusText(code)
	}()
	s.Close()
	if got := <-answered; got != http.StatusText(http.StatusServiceUnavailable) {
		t.Errorf("a server that closes answers %q", got)
	}
}
