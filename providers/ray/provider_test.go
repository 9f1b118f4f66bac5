package ray_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/providertest"
	"github.com/fray-ml/fray/providers/ray"
	"github.com/fray-ml/fray/schema"
)

// noToken keeps tests from this machine's own token.
func noToken(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("RAY_AUTH_TOKEN", "")
	t.Setenv("RAY_AUTH_TOKEN_PATH", "")
}

// TestConformance runs the suite of all providers on recorded answers.
func TestConformance(t *testing.T) {
	noToken(t)
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		f := newFakeRay(t)
		return providertest.Harness{
			Provider: f.open(""), Reopen: func() providers.Provider { return f.open("") }, Spec: spec("", 2),
			Reported: func(context.Context, string) int { return 2 },
			Left: func(slice string) []string {
				f.mu.Lock()
				defer f.mu.Unlock()
				var left []string
				for _, j := range f.jobs {
					if j.Metadata["fray-slice"] == slice && j.Metadata["fray-withdraw"] == "" && (j.Status == "PENDING" || j.Status == "RUNNING") {
						left = append(left, j.ID)
					}
				}
				return left
			},
			CrashCreate: func(s schema.SliceSpec) { _ = f.open("").Create(t.Context(), s) },
			Damage: func(slice string) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.jobs = append(f.jobs, &fakeJob{ID: "fray_" + slice + "_9", Status: "RUNNING", Metadata: map[string]string{
					"fray-stack": "stack-a", "fray-slice": slice, "fray-attempt": "9", "fray-spec": "{",
				}})
			},
		}
	})
}

// What became of a slice follows from how its job ended, by recorded answers.
func TestEndsOfJobs(t *testing.T) {
	noToken(t)
	code := func(n int) *int { return &n }
	for name, test := range map[string]struct {
		end    fakeJob
		phase  schema.SlicePhase
		cause  schema.ErrorKind
		reason string
	}{
		"node lost": {
			end: fakeJob{Status: "FAILED", Error: "JOB_ENTRYPOINT_COMMAND_ERROR", Code: code(71),
				Message: "Job entrypoint command failed with exit code 71, last available logs (truncated to 20,000 chars):\nfray: host 0: running\nfray: node 30aa4da91359 of host 1 died\n"},
			phase: schema.SliceDead, cause: schema.ErrorPreempted, reason: "node 30aa4da91359 of host 1 died",
		},
		"head lost": {
			end:   fakeJob{Status: "FAILED", Error: "JOB_SUPERVISOR_ACTOR_DIED", Message: "Job supervisor actor died: The actor died because its node has died."},
			phase: schema.SliceDead, cause: schema.ErrorPreempted, reason: "its node has died",
		},
		"killed": {
			end:   fakeJob{Status: "FAILED", Error: "JOB_ENTRYPOINT_COMMAND_ERROR", Code: code(137), Message: "Job entrypoint command failed with exit code 137"},
			phase: schema.SliceDead, cause: schema.ErrorPreempted, reason: "killed (status 137)",
		},
		"killed, of an exec": {
			end:   fakeJob{Status: "FAILED", Error: "JOB_ENTRYPOINT_COMMAND_ERROR", Code: code(-9), Message: "Job entrypoint command failed with exit code -9"},
			phase: schema.SliceDead, cause: schema.ErrorPreempted, reason: "killed (status -9)",
		},
		"no place for the driver": {
			end:   fakeJob{Status: "FAILED", Error: "JOB_SUPERVISOR_ACTOR_START_TIMEOUT", Message: "Job supervisor actor failed to start within 900.0 seconds."},
			phase: schema.SliceDead, cause: schema.ErrorCapacity, reason: "within 900.0 seconds",
		},
		"package gone": {
			end:   fakeJob{Status: "FAILED", Error: "RUNTIME_ENV_SETUP_FAILURE", Message: "runtime_env setup failed: Failed to download package"},
			phase: schema.SliceDead, cause: schema.ErrorUnavailable, reason: "could not unpack fray's program",
		},
		"agent cannot run": {
			end: fakeJob{Status: "FAILED", Error: "JOB_ENTRYPOINT_COMMAND_ERROR", Code: code(73),
				Message: "Job entrypoint command failed with exit code 73, last available logs:\nfray: host 0 cannot run an agent: [Errno 28] No space left on device"},
			phase: schema.SliceDead, cause: schema.ErrorUnavailable, reason: "No space left on device",
		},
		"driver fails": {
			end:   fakeJob{Status: "FAILED", Error: "JOB_ENTRYPOINT_COMMAND_ERROR", Code: code(1), Message: "Job entrypoint command failed with exit code 1, last available logs:\nModuleNotFoundError: No module named 'ray'"},
			phase: schema.SliceDead, cause: schema.ErrorUnavailable, reason: "status 1: ModuleNotFoundError: No module named 'ray'",
		},
		"stopped by people": {end: fakeJob{Status: "STOPPED", Message: "Job was intentionally stopped."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeRay(t)
			p, s := f.open(""), spec("one", 2)
			if err := p.Create(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			j := f.jobs[0]
			j.Status, j.Error, j.Code, j.Message = test.end.Status, test.end.Error, test.end.Code, test.end.Message
			in, err := p.Inventory(t.Context(), s.Stack)
			if err != nil {
				t.Fatal(err)
			}
			if test.phase == "" {
				if len(in.Slices) != 0 {
					t.Errorf("it is listed as %+v", in.Slices)
				}
				return
			}
			if len(in.Slices) != 1 || in.Slices[0].Phase != test.phase || in.Slices[0].Cause != test.cause || !strings.Contains(in.Slices[0].Reason, test.reason) {
				t.Errorf("it is listed as %+v", in.Slices)
			}
			// The next creation returns that error once, and the one after it submits anew.
			if err := p.Create(t.Context(), s); err == nil || providers.KindOf(err) != test.cause {
				t.Errorf("the next creation returns %v", err)
			}
			if err := p.Create(t.Context(), s); err != nil {
				t.Errorf("the creation after it returns %v", err)
			}
			if last := f.jobs[len(f.jobs)-1]; last.ID != "fray_one_3" {
				t.Errorf("it was submitted as %s", last.ID)
			}
		})
	}
}

// A slice that waits states what Ray's nodes lack, and that it has no machines.
func TestPendingReasons(t *testing.T) {
	noToken(t)
	for name, test := range map[string]struct {
		change func(*schema.SliceSpec)
		want   string
	}{
		"infeasible": {func(s *schema.SliceSpec) { s.CPU = 64 }, "Ray: no node has 64 CPU; the most that one has is 8 CPU"},
		"too few":    {func(s *schema.SliceSpec) { s.CPU = 6 }, "Ray: 2 nodes with 6 CPU are needed, and the cluster has 1"},
		"taken":      {func(s *schema.SliceSpec) { s.CPU = 4 }, "Ray: waits for 2 nodes with 4 CPU free each; 2 nodes have that much in all"},
		"one":        {func(s *schema.SliceSpec) { s.Hosts = 1; s.CPU = 8 }, "Ray: waits for a node with 8 CPU free; 1 node has that much in all"},
		"memory":     {func(s *schema.SliceSpec) { s.Memory = 64 << 30 }, "Ray: no node has 1 CPU and 64 GiB memory; the most that one has is 16 GiB memory"},
		"gpu": {
			func(s *schema.SliceSpec) { s.GPU = schema.GPU{Type: "h100", Count: 8} },
			"Ray: no node has 1 CPU and 8 GPU and accelerator_type:H100; the most that one has is 0 GPU, 0 accelerator_type:H100",
		},
		"a100": { // Ray calls nodes with either size A100
			func(s *schema.SliceSpec) { s.CPU = 0; s.GPU = schema.GPU{Type: "a100", Count: 1} },
			"Ray: no node has 1 GPU and accelerator_type:A100; the most that one has is 0 GPU, 0 accelerator_type:A100",
		},
		"tpu": {func(s *schema.SliceSpec) { s.CPU = 0; s.TPU = "v4-16" }, "Ray: no node has 4 TPU and 1 TPU-v4-16-head; the most that one has is 0 TPU, 0 TPU-v4-16-head"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeRay(t)
			p, s := f.open(""), spec("one", 2)
			test.change(&s)
			if err := p.Create(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			f.groups["fray_one_1"] = "PENDING"
			in, err := p.Inventory(t.Context(), s.Stack)
			if err != nil {
				t.Fatal(err)
			}
			if st := in.Slices[0]; st.Phase != schema.SliceCreating || !st.Waiting || st.Reason != test.want {
				t.Errorf("it is listed as %+v, want %q", st, test.want)
			}
		})
	}
}

// A list that fails, or is not whole, is an error and never a shorter list; a direct read says that
// there is no slice only where Ray itself answers.
func TestReadingsThatFail(t *testing.T) {
	noToken(t)
	f := newFakeRay(t)
	p, s := f.open(""), spec("one", 1)
	if err := p.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/jobs/", "/api/v0/placement_groups"} {
		f.fail["GET "+path] = "Traceback (most recent call last):\n  …\nRuntimeError: no GCS"
		if in, err := p.Inventory(t.Context(), s.Stack); err == nil || providers.KindOf(err) != schema.ErrorUnavailable || !strings.Contains(err.Error(), "RuntimeError: no GCS") {
			t.Errorf("%s: listed %+v, %v", path, in, err)
		}
		if st, found, err := p.Get(t.Context(), s); err == nil {
			t.Errorf("%s: read %+v, %v", path, st, found)
		}
		delete(f.fail, "GET "+path)
	}
	f.jobs = nil // a head that has restarted
	if in, err := p.Inventory(t.Context(), s.Stack); err != nil || len(in.Slices) != 0 {
		t.Errorf("listed %+v, %v", in, err)
	}
	if _, found, err := p.Get(t.Context(), s); err != nil || found {
		t.Errorf("read %v, %v", found, err)
	}
	if !slices.Contains(f.calls, "GET /api/version") {
		t.Error("Ray was not asked whether it is there")
	}
	f.fail["GET /api/version"] = "a proxy"
	if _, found, err := p.Get(t.Context(), s); err == nil {
		t.Errorf("read %v from what is not Ray", found)
	}
	notRay := httptest.NewServer(nil)
	defer notRay.Close()
	other, err := ray.New(ray.Config{Address: notRay.URL, StoreLocation: "/s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Get(t.Context(), s); err == nil {
		t.Error("a server that is not Ray says that there is no slice")
	}
}

// A job without the stack's mark is never stopped, whatever its id.
func TestOthersJobsAreLeftAlone(t *testing.T) {
	noToken(t)
	f := newFakeRay(t)
	p, s := f.open(""), spec("one", 1)
	f.jobs = []*fakeJob{
		{ID: "fray_one_1", Status: "RUNNING"},
		{ID: "raysubmit_x", Status: "RUNNING", Metadata: map[string]string{"fray-stack": "stack-a", "fray-slice": "one", "fray-attempt": "1"}},
	}
	if err := p.Delete(t.Context(), s); err != nil {
		t.Error(err)
	}
	if err := p.Create(t.Context(), s); err == nil || providers.KindOf(err) != schema.ErrorConflict {
		t.Errorf("where another program's job has the id, a creation returns %v", err)
	}
	for _, j := range f.jobs {
		if j.stopping {
			t.Errorf("%s was stopped", j.ID)
		}
	}
}

// The program is sent once for all slices and processes.
func TestProgramIsSentOnce(t *testing.T) {
	noToken(t)
	f := newFakeRay(t)
	for _, name := range []string{"a", "b"} {
		if err := f.open("").Create(t.Context(), spec(name, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if f.uploads != 1 {
		t.Errorf("it was sent %d times", f.uploads)
	}
}

// An upgrade that puts another program into the place of the one that was sent is sent itself.
func TestAnotherProgramIsSent(t *testing.T) {
	noToken(t)
	f := newFakeRay(t)
	file := filepath.Join(t.TempDir(), "fray")
	p, err := ray.New(ray.Config{Address: f.server.URL, StoreLocation: "/s", Program: func() (string, error) { return file, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range []string{"a", "b"} {
		next := filepath.Join(t.TempDir(), "fray")
		if err := errors.Join(os.WriteFile(next, []byte("program "+name), 0o700), os.Rename(next, file), p.Create(t.Context(), spec(name, 1))); err != nil {
			t.Fatal(err)
		}
		if f.uploads != n+1 {
			t.Errorf("after the slice %s there were %d uploads, want %d", name, f.uploads, n+1)
		}
	}
}

// Errors name the address, how to start a cluster and where a token belongs, and never a token.
func TestErrorsSayWhatToDo(t *testing.T) {
	noToken(t)
	f := newFakeRay(t)
	f.token = "the-right-token"
	wrong := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(wrong, []byte("the-wrong-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	places := []string{"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "token_file", "~/.ray/auth_token"}
	check := func(p *ray.Provider, kind schema.ErrorKind, words ...string) {
		t.Helper()
		_, err := p.Inventory(t.Context(), "stack-a")
		if err == nil || providers.KindOf(err) != kind {
			t.Fatalf("got %v, want kind %s", err, kind)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v does not name %q", err, word)
			}
		}
		if strings.Contains(err.Error(), "-token\"") || strings.Contains(err.Error(), "the-wrong-token") {
			t.Errorf("%v has the token", err)
		}
	}
	check(f.open(""), schema.ErrorPermission, append(places, f.server.URL)...)
	check(f.open(wrong), schema.ErrorPermission, append(places, f.server.URL, wrong)...)
	check(f.open(filepath.Join(t.TempDir(), "none")), schema.ErrorPermission, "none", "token_file")
	t.Setenv("RAY_AUTH_TOKEN", "the-right-token")
	if _, err := f.open("").Inventory(t.Context(), "stack-a"); err != nil {
		t.Errorf("with the right token: %v", err)
	}
	f.server.Close()
	check(f.open(""), schema.ErrorUnavailable, f.server.URL, "ray start --head", "address")
	for _, address := range []string{"", "ray://head:10001", "head:", "http://u:p@head:8265"} {
		if _, err := ray.New(ray.Config{Address: address, StoreLocation: "/s"}); err == nil && address != "head:" {
			t.Errorf("the address %q is taken", address)
		}
	}
}

// Agents that do not run are found in the driver's log.
func TestHostReports(t *testing.T) {
	noToken(t)
	f := newFakeRay(t)
	p, s := f.open(""), spec("one", 2)
	if err := p.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	f.logs["fray_one_1"] = "Running entrypoint\nfray: host 0: running\nfray: host 1: running\nfray: host 1: failed: the agent ended with status 1: permission denied\n"
	got, err := p.HostReports(t.Context(), s, []int{1})
	want := []providers.HostReport{{Host: 1, Status: "failed: the agent ended with status 1: permission denied"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A slice that was seen in another session of the cluster is not gone by a direct read: its agents may run on. Once the
// plan takes it for gone it is submitted anew.
func TestAnotherSession(t *testing.T) {
	noToken(t)
	f := newFakeRay(t)
	p, s := f.open(""), spec("one", 1)
	if err := p.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	read := func(p *ray.Provider) (bool, error) {
		t.Helper()
		if _, err := p.Inventory(t.Context(), s.Stack); err != nil {
			t.Fatal(err)
		}
		_, found, err := p.Get(t.Context(), s)
		return found, err
	}
	if found, err := read(p); !found || err != nil {
		t.Fatalf("before the restart it is found: %v, %v", found, err)
	}
	f.restarts, f.jobs = 1, nil
	if found, err := read(p); found || err == nil || providers.KindOf(err) != schema.ErrorUnavailable || !strings.Contains(err.Error(), f.server.URL) {
		t.Errorf("after the restart it is found: %v, %v; want an error that names the address", found, err)
	}
	if found, err := read(f.open("")); found || err != nil {
		t.Errorf("a process that has not seen it finds it: %v, %v", found, err)
	}
	if err := p.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if found, err := read(p); !found || err != nil || f.jobs[0].ID != "fray_one_1" {
		t.Errorf("created anew it is found: %v, %v as %s", found, err, f.jobs[0].ID)
	}
	f.jobs = nil
	if found, err := read(p); found || err != nil {
		t.Errorf("it is found without its job: %v, %v", found, err)
	}
}
