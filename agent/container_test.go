package agent

import (
	"crypto/sha256"
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
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// containerRig is a host that is a machine of its own, with a container runtime.
type containerRig struct {
	*rig
	image  string
	client string      // program of the runtime
	docker *fakeDocker // nil: the runtime is a real one
}

// containerTest runs a test with each runtime that there is.
func containerTest(t *testing.T, test func(t *testing.T, r *containerRig)) {
	t.Run("docker", func(t *testing.T) {
		bin := t.TempDir()
		d := newFakeDocker(t, bin)
		d.images["img"] = true
		test(t, newContainerRig(t, bin, &containerRig{image: "img", client: filepath.Join(bin, "docker"), docker: d}))
	})
	t.Run("podman", func(t *testing.T) {
		bin := t.TempDir()
		client, image := realPodman(t, bin)
		test(t, newContainerRig(t, bin, &containerRig{image: image, client: client}))
	})
}

func newContainerRig(t *testing.T, bin string, c *containerRig, env ...string) *containerRig {
	t.Helper()
	c.rig = newRig(t)
	c.path = bin + ":" + os.Getenv("PATH")
	c.env = env
	c.killAgent()
	c.startAgent("--simulated=false")
	return c
}

// realPodman makes a podman with an image of a static shell, or skips.
func realPodman(t *testing.T, bin string) (client, image string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	podman, missing := exec.LookPath("podman")
	if err != nil || missing != nil {
		t.Skip("there is no podman, or no static shell for an image")
	}
	root := t.TempDir()
	sum := sha256.Sum256([]byte(root)) // tests run at the same time, and each removes its own
	image, client = fmt.Sprintf("localhost/fray-agent-test:%x", sum[:4]), filepath.Join(bin, "podman")
	script := "mkdir bin && cp " + busybox + " bin/busybox && for a in sh sleep cat echo env test; do ln -s busybox bin/$a; done && tar -c . | " +
		podman + " import --quiet - " + image
	build := exec.CommandContext(t.Context(), "sh", "-c", script)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Skipf("no image can be made here: %s", output)
	}
	t.Cleanup(func() {
		if output, err := exec.Command(podman, "rmi", "--force", image).CombinedOutput(); err != nil {
			t.Errorf("remove image: %v: %s", err, output)
		}
	})
	// Machines without CAP_SYS_RESOURCE, or with an old hierarchy of cgroups,
	// need flags of their own.
	limits := filepath.Join(root, "containers.conf")
	if err := os.WriteFile(limits, []byte("[containers]\ndefault_ulimits=[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := "export CONTAINERS_CONF=" + limits + "\n[ \"$1\" = run ] || exec " + podman + " --runtime runc \"$@\"\n" +
		"shift\nexec " + podman + ` --runtime runc run --ulimit host "$@"`
	for _, wrapper := range []string{"exec " + podman + ` "$@"`, own} {
		if err := os.WriteFile(client, []byte("#!/bin/sh\n"+wrapper+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		try := exec.CommandContext(t.Context(), client, "run", "--rm", "--pull", "never", "--network", "host", image, "/bin/sh", "-c", "true")
		if output, err := try.CombinedOutput(); err == nil {
			return client, image
		} else if wrapper == own {
			t.Skipf("podman runs no containers here: %s", output)
		}
	}
	return "", ""
}

// job is a job that runs a shell script in the image.
func (r *containerRig) job(script string) schema.Job {
	spec := job(script)
	spec.Environment.Image = r.image
	return spec
}

// sealed is a secret as an assignment has it.
func sealed(t *testing.T, secret string) schema.Text {
	t.Helper()
	text, err := schema.Secret(secret).Seal(rot{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// containers are those of this host.
func (r *containerRig) containers() string {
	r.t.Helper()
	mark := (&hostDir{path: r.dir}).hostMark()
	output, err := exec.Command(r.client, "ps", "--all", "--quiet", "--filter", "label="+labelHost+"="+mark).Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return string(output)
}

func (r *containerRig) wantNoContainer() {
	r.t.Helper()
	if left := r.containers(); left != "" {
		r.t.Errorf("containers %q are left", left)
	}
}

func (r *containerRig) awaitOutput(text string) {
	r.t.Helper()
	eventually(r.t, "output "+text, func() bool { return strings.Contains(r.output(), text) }, func() string { return r.output() })
}

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
		spec := r.job(`echo "$PLAIN|$SECRET|$LINES|$FRAY_JOB_NAME|$FRAY_VAR_x"; cat data; test -d "$XDG_CACHE_HOME" && echo warm; exit 3`)
		spec.Environment.Bundle = m.Sum
		spec.Environment.Env = map[string]schema.Text{
			"PLAIN": schema.Plain("a b"), "SECRET": sealed(t, "hunter22"), "LINES": schema.Plain("1\n2"),
		}
		end := r.awaitTask(r.assign(&spec), schema.TaskFailed)
		if end.Reason != "exit status 3" || !end.Started {
			t.Errorf("got %+v, want exit status 3", end)
		}
		want := "a b|hunter22|1\n2|a|\nof the project\nwarm\n"
		if got := r.output(); got != want {
			t.Errorf("its output is %q, want %q", got, want)
		}
		r.wantNoContainer()
		if left, err := filepath.Glob(filepath.Join(r.dir, tasksDir, "*", envFile)); err != nil || left != nil {
			t.Errorf("variables are left in %v, %v", left, err)
		}
	})
}

func TestContainerStops(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		polite := r.job(`trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
		gen := r.assign(&polite)
		r.awaitTask(gen, schema.TaskRunning)
		r.awaitOutput("up")
		quick := r.job("exit 0")
		r.assign(&quick)
		r.awaitTask(gen+1, schema.TaskSucceeded)
		data, _, err := tailLogs(t.Context(), r.store, "id-1", int(gen), 0, 0)
		if err != nil || string(data) != "up\nsaved\n" {
			t.Errorf("the first task wrote %q, %v; want that SIGTERM reached it", data, err)
		}

		deaf := r.job(`trap '' TERM; echo up; while :; do sleep 0.05; done`)
		deaf.StopGrace = schema.Duration(200 * time.Millisecond)
		gen = r.assign(&deaf)
		r.awaitTask(gen, schema.TaskRunning)
		r.awaitOutput("up")
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
		gen := r.assign(&spec)
		r.awaitTask(gen, schema.TaskRunning)
		r.awaitOutput("up")
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

// TestContainerWithoutItsClient: whoever kills the client or its supervisor,
// the container does not stay.
func TestContainerWithoutItsClient(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		spec := r.job(`trap '' TERM; echo up; while :; do sleep 0.05; done`)
		gen := r.assign(&spec)
		r.awaitTask(gen, schema.TaskRunning)
		r.awaitOutput("up")
		h, err := readHolder(filepath.Join(r.dir, taskLockFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(h.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.awaitTask(gen, schema.TaskWorkerFailed)
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
		mark := (&hostDir{path: r.dir}).hostMark()
		old := exec.CommandContext(t.Context(), r.client, "run", "--name", "fray-old-"+mark, "--label", labelHost+"="+mark,
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
		r.await("a healthy task", func(h store.HostReport) bool {
			return h.Task != nil && h.Task.Generation == gen && h.Task.Ready() && h.Task.Health == store.HealthHealthy
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
		{"img", "kill -9 $$", "exit status 137"},
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
	r.await("the pull", func(h store.HostReport) bool {
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
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\necho Cannot connect to the Docker daemon\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	end = r.awaitTask(r.assign(&spec), schema.TaskUnschedulable)
	if !strings.Contains(end.Reason, "docker does not work: Cannot connect to the Docker daemon") {
		t.Errorf("got %q", end.Reason)
	}
	spec.Environment.UV = &schema.UV{}
	end = r.awaitTask(r.assign(&spec), schema.TaskUnschedulable)
	if !strings.Contains(end.Reason, "environment.uv is for tasks without environment.image") {
		t.Errorf("got %q", end.Reason)
	}
}

func TestContainerFlags(t *testing.T) {
	for _, test := range []struct {
		tpu  bool
		want []string
	}{
		{true, []string{"--privileged", "memlock=68719476736", "host", "100g"}},
		{false, []string{"host", "100g"}},
	} {
		task := &task{
			agent: &agent{Config: Config{CacheDir: "/cache"}, dir: &hostDir{path: "/host"}}, run: &store.Run{},
			in: intent{TPU: test.tpu, Key: "k", Container: &container{Runtime: "/usr/bin/docker", Name: "fray-k"}},
		}
		flags := task.containerFlags()
		for _, want := range []string{"--privileged", "memlock=68719476736", "host", "100g"} {
			if got := slices.Contains(flags, want); got != slices.Contains(test.want, want) {
				t.Errorf("TPU %v: %s among the flags: %v\n%v", test.tpu, want, got, flags)
			}
		}
	}
}

func TestRegistryOf(t *testing.T) {
	for image, want := range map[string]string{
		"python:3.12": "", "library/python": "", "gcr.io/a/b:1": "gcr.io", "us-docker.pkg.dev/p/r/i@sha256:1": "us-docker.pkg.dev",
		"localhost/x": "localhost", "registry:5000/x": "registry:5000",
	} {
		if got := registryOf(image); got != want {
			t.Errorf("%s comes from %q, want %q", image, got, want)
		}
	}
}
