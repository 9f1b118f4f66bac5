package agent

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestContainer(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		project := t.TempDir()
		if err := os.WriteFile(filepath.Join(project, "data"), []byte("of the project\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := bundle.Measure(project)
		if err == nil {
			err = bundle.Shipper{Store: r.store}.Ship(t.Context(), bundle.Project{Dir: project, Bundle: m})
		}
		if err != nil {
			t.Fatal(err)
		}
		spec := r.job(`echo "$PLAIN|$SECRET|${#SECRET}|$LINES|$FRAY_JOB_NAME|$FRAY_VAR_x|$FRAY_PROGRAM"; cat data; test -d "$XDG_CACHE_HOME" && echo warm; exit 3`)
		spec.Environment.Bundle = m.Sum
		spec.Environment.Env = map[string]schema.Text{
			"PLAIN": schema.Plain("a b"), "SECRET": sealed(t, "hunter22"), "LINES": schema.Plain("1\n2"),
		}
		end := r.awaitTask(r.assign(&spec), schema.TaskFailed)
		if end.Reason != "exit status 3" || !end.Started {
			t.Errorf("got %+v, want exit status 3", end)
		}
		want := "a b|(sensitive value)|8|1\n2|a||\nof the project\nwarm\n"
		if got := r.output(); got != want {
			t.Errorf("its output is %q, want %q", got, want)
		}
		r.wantNoContainer()
		if left, err := filepath.Glob(filepath.Join(r.dir, hostdir.TasksDir, "*", hostdir.EnvFile)); err != nil || left != nil {
			t.Errorf("variables are left in %v, %v", left, err)
		}
	})
}

// An agent that was given its GPUs by UUID, as a node of Ray may give them, names these to
// the runtime: their indices are those of others on the machine. Within the container the
// task's own count from 0.
func TestContainerGPUsByName(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	d := newFakeDocker(t, bin)
	d.images["img"] = true
	r := newContainerRig(t, bin, &containerRig{image: "img", client: filepath.Join(bin, "docker"), docker: d}, "CUDA_VISIBLE_DEVICES=GPU-8e1,GPU-9f2")
	spec := r.job(`echo "$CUDA_VISIBLE_DEVICES"`)
	spec.Resources.GPU = schema.GPU{Type: "h100", Count: 2}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if got := r.output(); got != "0,1\n" {
		t.Errorf("the task sees %q, want its own two", got)
	}
	d.mu.Lock()
	calls := slices.Clone(d.calls)
	d.mu.Unlock()
	want := `"device=GPU-8e1,GPU-9f2"`
	if !slices.ContainsFunc(calls, func(args []string) bool { return slices.Contains(args, want) }) {
		t.Errorf("the runtime was called with %v, want %s among them", calls, want)
	}

	many := r.job("exit 0")
	many.Resources.GPU = schema.GPU{Type: "h100", Count: 3}
	end := r.awaitTask(r.assign(&many), schema.TaskFailed)
	if !strings.Contains(end.Reason, "needs 3 GPUs") {
		t.Errorf("a task with more GPUs than there are: %q", end.Reason)
	}
}

func TestContainerStops(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		polite := r.job(`trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
		polite.StopGrace = schema.Duration(patience)
		gen := r.runsUp(polite)
		quick := r.job("exit 0")
		r.assign(&quick)
		r.awaitTask(gen+1, schema.TaskSucceeded)
		data, _, err := tailLogs(t.Context(), r.store, "id-1", int(gen), 0, 0)
		// A runtime's client may add that what it tells of a signal has ended meanwhile.
		if err != nil || !strings.HasPrefix(string(data), "up\nsaved\n") {
			t.Errorf("the first task wrote %q, %v; want that SIGTERM reached it", data, err)
		}

		deaf := r.job(`trap '' TERM; echo up; while :; do sleep 0.05; done`)
		deaf.StopGrace = schema.Duration(200 * time.Millisecond)
		gen = r.runsUp(deaf)
		r.assign(&quick)
		r.awaitTask(gen+1, schema.TaskSucceeded)
		r.wantNoContainer()
	})
}

// TestContainerIsAdopted: the agent dies, and the next one goes on.
func TestContainerIsAdopted(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		spec := r.job(`echo up; while ! test -e ` + r.dir + `/cache/go; do sleep 0.05; done; echo done`)
		gen := r.runsUp(spec)
		r.killAgent()
		r.startAgent("--simulated=false")
		if err := os.WriteFile(filepath.Join(r.dir, "cache", "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.awaitTask(gen, schema.TaskSucceeded)
		if got := r.output(); got != "up\ndone\n" {
			t.Errorf("its output is %q", got)
		}
		r.wantNoContainer()
	})
}

// TestContainerWithoutItsClient: the container does not outlive its client
// or its supervisor, whatever kills them.
func TestContainerWithoutItsClient(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		spec := r.job(`trap '' TERM; echo up; while :; do sleep 0.05; done`)
		gen := r.runsUp(spec)
		h, err := hostdir.ReadHolder(filepath.Join(r.dir, hostdir.TaskLockFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(h.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.awaitTask(gen, schema.TaskExitUnknown)
		r.wantNoContainer()

		r.assign(&spec)
		pid := r.awaitTask(gen+1, schema.TaskRunning).PID
		r.awaitOutput("up")
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.awaitTask(gen+1, schema.TaskFailed)
		r.wantNoContainer()
	})
}

// TestContainerOfBefore: what is left of an earlier task ends before the next begins.
func TestContainerOfBefore(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		mark := (&hostdir.Dir{Path: r.dir}).HostMark()
		old := exec.CommandContext(t.Context(), r.client, "run", "--name", "fray-old-"+mark, "--label", "fray-host="+mark,
			"--pull", "never", "--network", "host", "--stop-timeout", "0", r.image, "/bin/sh", "-c", "sleep 1000")
		if err := old.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the old container", func() bool { return r.containers() != "" }, nothing)
		quick := r.job("exit 0")
		r.awaitTask(r.assign(&quick), schema.TaskSucceeded)
		if left := r.containers(); left != "" {
			t.Fatalf("containers %q are left", left)
		}
		_ = old.Wait() // killed
	})
}

func TestContainerHealth(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		spec := r.job("sleep 1000")
		spec.HealthCheck = &schema.Health{
			Exec: []string{"/bin/sh", "-c", "exit 0"}, Interval: schema.Duration(time.Second), Timeout: schema.Duration(5 * time.Second), Threshold: 3,
		}
		gen := r.assign(&spec)
		r.await("a healthy task", func(h state.HostReport) bool {
			return h.Task != nil && h.Task.Generation == gen && h.Task.Ready() && h.Task.Health == state.HealthHealthy
		})
		r.assign(nil)
		r.awaitTask(gen, schema.TaskKilled)
		r.wantNoContainer()
	})
}

// TestContainerEnds says how a container ended where only the runtime knows.
func TestContainerEnds(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	d := newFakeDocker(t, bin)
	r := newContainerRig(t, bin, &containerRig{client: filepath.Join(bin, "docker"), docker: d})
	for _, test := range []struct{ image, script, want string }{
		{"oom", "kill -9 $$", "exit status 137: out of memory"},
		{"img", "kill -9 $$", "exit status 137 (killed by SIGKILL, as when memory runs out)"},
		{"broken", "true", "the container did not start (exit status 125 of " + r.client + "); see the task's log"},
	} {
		d.mu.Lock()
		d.images[test.image] = true
		d.mu.Unlock()
		r.image = test.image
		spec := r.job(test.script)
		if end := r.awaitTask(r.assign(&spec), schema.TaskFailed); end.Reason != test.want {
			t.Errorf("%s: %q, want %q", test.image, end.Reason, test.want)
		}
	}
}

func TestContainerPull(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	d := newFakeDocker(t, bin)
	const private = "us-docker.pkg.dev/acme/images/trainer:1"
	d.registry[private], d.registry["ghcr.io/a/b"] = "", ""
	d.registry["far"] = "Error response from daemon: Get https://registry: dial tcp: lookup registry: no such host"
	d.registry["ghcr.io/acme/private"] = "denied"
	d.registry["stale"], d.images["stale"] = d.registry["far"], true
	d.images["pinned@sha256:1"] = true
	r := newContainerRig(t, bin, &containerRig{client: filepath.Join(bin, "docker"), docker: d}, registryTokenEnv+"=ya29.token")
	for _, test := range []struct {
		image, reason string
		state         schema.TaskState
		login         []string // of each pull
	}{
		{private, "", schema.TaskSucceeded, []string{
			`{"auths":{"us-docker.pkg.dev":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("oauth2accesstoken:ya29.token")) + `"}}}`}},
		{"ghcr.io/a/b", "", schema.TaskSucceeded, []string{""}},
		{"stale", "", schema.TaskSucceeded, []string{""}},
		{"pinned@sha256:1", "", schema.TaskSucceeded, nil},
		{"typo", "pull typo: Error response from daemon: manifest for typo not found: manifest unknown", schema.TaskFailed, []string{""}},
		{"ghcr.io/acme/private", "pull ghcr.io/acme/private: denied; fray logs in at Google's registries only: copy the image to Artifact Registry or let a remote repository of it " +
			"fetch the image, or use a boot_image that is logged in", schema.TaskFailed, []string{""}},
		{"far", "pull far: " + d.registry["far"], schema.TaskWorkerFailed, []string{""}},
	} {
		d.mu.Lock()
		d.logins = nil
		d.mu.Unlock()
		r.image = test.image
		spec := r.job("exit 0")
		end := r.awaitTask(r.assign(&spec), test.state)
		d.mu.Lock()
		logins := d.logins
		d.mu.Unlock()
		if end.Reason != test.reason || !slices.Equal(logins, test.login) {
			t.Errorf("%s: %q with logins %q, want %q with %q", test.image, end.Reason, logins, test.reason, test.login)
		}
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, ".login-*")); err != nil || left != nil {
		t.Errorf("logins are left: %v, %v", left, err)
	}
	// A pull that takes its time says so, and is given up when it must.
	d.mu.Lock()
	d.slow = make(chan struct{})
	slow := d.slow
	d.mu.Unlock()
	r.image = "ghcr.io/a/b"
	spec := r.job("exit 0")
	gen := r.assign(&spec)
	r.await("the pull", func(h state.HostReport) bool {
		return h.Task != nil && h.Task.Generation == gen && h.Task.State == schema.TaskBuilding && h.Task.Reason == "pulling ghcr.io/a/b"
	})
	r.assign(nil)
	r.awaitTask(gen, schema.TaskKilled)
	close(slow)
}

func TestContainerKeepsSecrets(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	d := newFakeDocker(t, bin)
	d.images["img"] = true
	r := newContainerRig(t, bin, &containerRig{image: "img", client: filepath.Join(bin, "docker"), docker: d})
	spec := r.job("exit 0")
	spec.Environment.Env = map[string]schema.Text{
		"A": sealed(t, "hunter22"), "B": sealed(t, "hunter33\nx"),
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	d.mu.Lock()
	defer d.mu.Unlock()
	ran := false
	for _, call := range d.calls {
		ran = ran || call[0] == "run"
		if strings.Contains(strings.Join(call, " "), "hunter") {
			t.Errorf("a secret is in %q", call)
		}
	}
	if !ran {
		t.Error("no container ran")
	}
}

// TestContainerRuntimeIsSlow: a task waits for a runtime that comes up after the agent.
func TestContainerRuntimeIsSlow(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	d := newFakeDocker(t, dir)
	d.images["img@sha256:1"] = true
	up := filepath.Join(dir, "up")
	script := fmt.Sprintf("#!/bin/sh\n[ -e '%s' ] || exit 1\nexec '%s' \"$@\"\n", up, filepath.Join(dir, "docker"))
	if err := writeProgram(filepath.Join(bin, "docker"), script); err != nil {
		t.Fatal(err)
	}
	r := newContainerRig(t, bin, &containerRig{image: "img@sha256:1", client: filepath.Join(bin, "docker"), docker: d})
	spec := r.job("exit 0")
	gen := r.assign(&spec)
	r.await("the wait", func(h state.HostReport) bool {
		return h.Task != nil && h.Task.Generation == gen && h.Task.State == schema.TaskBuilding && h.Task.Reason == "waiting for docker"
	})
	if err := os.WriteFile(up, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.awaitTask(gen, schema.TaskSucceeded)
}

func TestNoContainerRuntime(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	r := newRig(t)
	r.path = bin
	r.killAgent()
	r.startAgent("--simulated=false")
	spec := job("exit 0")
	spec.Environment.Image = "img"
	end := r.awaitTask(r.assign(&spec), schema.TaskUnschedulable)
	if !strings.Contains(end.Reason, "this host has neither docker nor podman; use a boot image that has one, or remove environment.image") {
		t.Errorf("got %q", end.Reason)
	}
	spec.Environment.UV = &schema.UV{}
	end = r.awaitTask(r.assign(&spec), schema.TaskUnschedulable)
	if !strings.Contains(end.Reason, "environment.uv is for tasks without environment.image") {
		t.Errorf("got %q", end.Reason)
	}
}
