package ray_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fray-ml/fray/providers/ray"
)

// fakeJob is a job as Ray lists it.
type fakeJob struct {
	ID       string            `json:"submission_id"`
	Status   string            `json:"status"`
	Message  string            `json:"message"`
	Error    string            `json:"error_type,omitempty"`
	Start    int64             `json:"start_time"`
	End      int64             `json:"end_time,omitempty"`
	Metadata map[string]string `json:"metadata"`
	Code     *int              `json:"driver_exit_code"`
	stopping bool
}

// fakeRay answers as the dashboard of Ray 2.60 was recorded to. Jobs start, and end once they were
// stopped, with the next list.
type fakeRay struct {
	t        *testing.T
	server   *httptest.Server
	token    string
	mu       sync.Mutex
	jobs     []*fakeJob
	packages map[string]int
	uploads  int
	groups   map[string]string // states by name, in place of CREATED
	hold     bool              // jobs stay as they are
	fail     map[string]string // answers with status 500, by method and path
	logs     map[string]string
	started  int64
	restarts int // of the head
	calls    []string
}

func newFakeRay(t *testing.T) *fakeRay {
	t.Helper()
	f := &fakeRay{t: t, packages: map[string]int{}, groups: map[string]string{}, fail: map[string]string{}, logs: map[string]string{}, started: 1_790_000_000_000}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"version": "4", "ray_version": "2.60.0", "ray_commit": "b7f4259", "session_name": "session_2026_%d"}`, f.restarts)
	})
	mux.HandleFunc("GET /api/jobs/{$}", f.list)
	mux.HandleFunc("POST /api/jobs/{$}", f.submit)
	mux.HandleFunc("GET /api/jobs/{id}", f.get)
	mux.HandleFunc("DELETE /api/jobs/{id}", f.remove)
	mux.HandleFunc("POST /api/jobs/{id}/stop", f.stop)
	mux.HandleFunc("GET /api/jobs/{id}/logs", func(w http.ResponseWriter, r *http.Request) {
		f.write(w, map[string]string{"logs": f.logs[r.PathValue("id")]})
	})
	mux.HandleFunc("GET /api/packages/gcs/{name}", f.hasPackage)
	mux.HandleFunc("PUT /api/packages/gcs/{name}", f.upload)
	mux.HandleFunc("GET /api/v0/placement_groups", f.listGroups)
	mux.HandleFunc("GET /api/v0/nodes", func(w http.ResponseWriter, _ *http.Request) {
		f.writeState(w, []map[string]any{
			{"state": "ALIVE", "resources_total": map[string]float64{"CPU": 8, "memory": 16 << 30}},
			{"state": "ALIVE", "resources_total": map[string]float64{"CPU": 4, "memory": 8 << 30}},
		})
	})
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls = append(f.calls, r.Method+" "+r.URL.Path)
		switch given := r.Header.Get("Authorization"); {
		case f.token != "" && given == "":
			http.Error(w, "Unauthorized: Missing authentication token", http.StatusUnauthorized)
		case f.token != "" && given != "Bearer "+f.token:
			http.Error(w, "Forbidden: Invalid authentication token", http.StatusForbidden)
		case f.fail[r.Method+" "+r.URL.Path] != "":
			http.Error(w, f.fail[r.Method+" "+r.URL.Path], http.StatusInternalServerError)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeRay) write(w io.Writer, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.t.Error(err)
	}
}

func (f *fakeRay) writeState(w io.Writer, items any) {
	data, err := json.Marshal(items)
	if err != nil {
		f.t.Error(err)
	}
	fmt.Fprintf(w, `{"result": true, "msg": "", "data": {"result": {"total": 2, "num_after_truncation": 2, "num_filtered": 2, "result": %s, "partial_failure_warning": "", "warnings": null}}}`, data)
}

func (f *fakeRay) job(id string) *fakeJob {
	for _, j := range f.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

func (f *fakeRay) list(w http.ResponseWriter, _ *http.Request) {
	for _, j := range f.jobs {
		if !f.hold {
			f.advance(j)
		}
	}
	f.write(w, append([]*fakeJob{}, f.jobs...))
}

func (f *fakeRay) advance(j *fakeJob) {
	switch {
	case j.Status == "PENDING" && j.Metadata["fray-withdraw"] == "true":
		j.Status = "SUCCEEDED"
	case j.Status == "PENDING":
		j.Status, j.Message = "RUNNING", "Job is currently running."
	case j.Status == "RUNNING" && j.stopping:
		j.Status, j.Message = "STOPPED", "Job was intentionally stopped."
	}
}

func (f *fakeRay) submit(w http.ResponseWriter, r *http.Request) {
	var order struct {
		ID         string            `json:"submission_id"`
		Metadata   map[string]string `json:"metadata"`
		RuntimeEnv struct {
			WorkingDir string `json:"working_dir"`
		} `json:"runtime_env"`
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		f.t.Error(err)
	}
	if f.job(order.ID) != nil {
		http.Error(w, "Traceback (most recent call last):\n  …\nValueError: Job with submission_id "+order.ID+" already exists. Please use a different submission_id.", http.StatusInternalServerError)
		return
	}
	if name, is := strings.CutPrefix(order.RuntimeEnv.WorkingDir, "gcs://"); is && f.packages[name] == 0 {
		f.t.Errorf("%s is submitted with package %s, which is not there", order.ID, name)
	}
	f.started++
	f.jobs = append(f.jobs, &fakeJob{
		ID: order.ID, Status: "PENDING", Start: f.started, Metadata: order.Metadata,
		Message: "Job has not started yet. It may be waiting for the runtime environment to be set up.",
	})
	f.write(w, map[string]string{"job_id": order.ID, "submission_id": order.ID})
}

func (f *fakeRay) get(w http.ResponseWriter, r *http.Request) {
	j := f.job(r.PathValue("id"))
	if j == nil {
		http.Error(w, "Job "+r.PathValue("id")+" does not exist", http.StatusNotFound)
		return
	}
	f.write(w, j)
}

func (f *fakeRay) stop(w http.ResponseWriter, r *http.Request) {
	j := f.job(r.PathValue("id"))
	if j == nil {
		http.Error(w, "Job does not exist", http.StatusNotFound)
		return
	}
	j.stopping = true
	f.write(w, map[string]bool{"stopped": j.Status == "RUNNING" || j.Status == "PENDING"})
}

func (f *fakeRay) remove(w http.ResponseWriter, r *http.Request) {
	for i, j := range f.jobs {
		if j.ID == r.PathValue("id") {
			f.jobs = append(f.jobs[:i], f.jobs[i+1:]...)
			break
		}
	}
	f.write(w, map[string]bool{"deleted": true})
}

func (f *fakeRay) hasPackage(w http.ResponseWriter, r *http.Request) {
	if f.packages[r.PathValue("name")] == 0 {
		http.Error(w, "Package does not exist", http.StatusNotFound)
	}
}

func (f *fakeRay) upload(_ http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.packages[r.PathValue("name")] = len(data)
	f.uploads++
}

func (f *fakeRay) listGroups(w http.ResponseWriter, _ *http.Request) {
	groups := []map[string]string{}
	for _, j := range f.jobs {
		state := f.groups[j.ID]
		if state == "" {
			state = "CREATED"
		}
		if j.Status == "RUNNING" {
			groups = append(groups, map[string]string{"name": j.ID, "state": state})
		}
	}
	f.writeState(w, groups)
}

// open returns a provider of the fake, which ships a small program.
func (f *fakeRay) open(tokenFile string) *ray.Provider {
	f.t.Helper()
	program := filepath.Join(f.t.TempDir(), "fray")
	if err := os.WriteFile(program, []byte("a program"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	p, err := ray.New(ray.Config{
		Address: f.server.URL, TokenFile: tokenFile, StoreLocation: "gs://bucket/prefix",
		Program: func() (string, error) { return program, nil },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}
