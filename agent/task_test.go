package agent

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func TestSecretsReachTheTaskOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const secret = "open-sesame-4711"
	sealed, err := schema.Secret(secret).Seal(rot{})
	if err != nil {
		t.Fatal(err)
	}
	spec := job(`[ "$TOKEN" = "$0" ] && echo same; exec sleep 1000`)
	spec.Command = append(spec.Command, sealed)
	spec.Environment.Env = map[string]schema.Text{"TOKEN": sealed}
	gen := r.assign(&spec)
	r.awaitTask(gen, schema.TaskRunning)
	eventually(t, "the task to compare", func() bool { return r.output() == "same\n" }, nothing)
	err = filepath.WalkDir(filepath.Dir(r.dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // what comes and goes meanwhile
		}
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(secret)) {
			t.Errorf("the secret is in %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTasksThatDoNotStart(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", rigAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	busy := listener.Addr().(*net.TCPAddr).Port
	r := newRig(t)
	if err := os.WriteFile(filepath.Join(r.work, "data.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeProgram(filepath.Join(r.work, "broken.sh"), "#!/no/such/shell\n"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*schema.Job)
		state  schema.TaskState
		reason []string
	}{
		{"unknown command", func(j *schema.Job) { j.Command = []schema.Text{schema.Plain("no-such-program")} },
			schema.TaskFailed, []string{`command "no-such-program" not found on PATH (`, "/bin"}},
		{"no such file", func(j *schema.Job) { j.Command = []schema.Text{schema.Plain("./run.sh")} },
			schema.TaskFailed, []string{`command "./run.sh" not found in ` + r.work}},
		{"not executable", func(j *schema.Job) { j.Command = []schema.Text{schema.Plain("./data.txt")} },
			schema.TaskFailed, []string{"./data.txt", "chmod"}},
		{"no interpreter", func(j *schema.Job) { j.Command = []schema.Text{schema.Plain("./broken.sh")} },
			schema.TaskFailed, []string{"start command", "no such file"}},
		{"secret name", func(j *schema.Job) {
			sealed, err := schema.Secret("no-such-program").Seal(rot{})
			if err != nil {
				t.Fatal(err)
			}
			j.Command = []schema.Text{sealed}
		}, schema.TaskFailed, []string{"sensitive"}},
		{"port in use", func(j *schema.Job) { j.Resources.Ports = []schema.Port{{Name: "http", Number: busy}} },
			schema.TaskUnschedulable, []string{"port " + strconv.Itoa(busy) + " (http) is in use on " + rigAddress}},
		{"no bundle", func(j *schema.Job) { j.Environment.Bundle = strings.Repeat("ab", 32) },
			schema.TaskWorkerFailed, []string{"fetch bundle abababababab: it is not in the store"}},
		{"uv without a lock file", func(j *schema.Job) { j.Environment.UV = &schema.UV{} },
			schema.TaskFailed, []string{"uv.lock"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			spec := job("echo x >> starts")
			test.change(&spec)
			task := r.awaitTask(r.assign(&spec), test.state)
			for _, part := range test.reason {
				if !strings.Contains(task.Reason, part) {
					t.Errorf("reason is %q, want it to contain %q", task.Reason, part)
				}
			}
			if task.Started || r.starts() != 0 {
				t.Errorf("it was started: %+v", task)
			}
		})
	}
	r.t = t
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job("exec sleep 1000")
	spec.Timeout = schema.Duration(200 * time.Millisecond)
	task := r.awaitTask(r.assign(&spec), schema.TaskFailed)
	if task.Reason != "timed out after 200ms" || task.Signal != "SIGTERM" {
		t.Errorf("task ended as %+v", task)
	}
}

func TestPreemption(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(`trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done`)
	spec.StopGrace = schema.Duration(patience)
	gen := r.assign(&spec)
	eventually(t, "the trap to be set", func() bool { return r.output() == "ready\n" }, nothing)
	notice := filepath.Join(r.dir, hostdir.PreemptedFile)
	if err := os.WriteFile(notice, []byte("spot capacity is needed elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	task := r.awaitTask(gen, schema.TaskPreempted)
	if task.Reason != "spot capacity is needed elsewhere" {
		t.Errorf("task ended as %+v", task)
	}
	if h, _ := r.report(); h.Notice == "" {
		t.Errorf("the report has no notice: %+v", h)
	}
	// Nothing starts on a host that is going, and what was refused does not
	// start later.
	quick := job("exit 0")
	gen = r.assign(&quick)
	if task := r.awaitTask(gen, schema.TaskPreempted); !strings.Contains(task.Reason, "spot capacity") || task.Started {
		t.Errorf("refused task is %+v", task)
	}
	if err := os.Remove(notice); err != nil {
		t.Fatal(err)
	}
	r.await("no notice", func(h state.HostReport) bool { return h.Notice == "" })
	if h, _ := r.report(); h.Task.State != schema.TaskPreempted {
		t.Errorf("refused task is %+v after the notice was taken back", h.Task)
	}
	gen = r.assign(&quick)
	r.awaitTask(gen, schema.TaskSucceeded)
}

func TestForeignAddressIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job("echo x >> starts")
	r.put(state.Assignment{Slice: "s", Epoch: 1, Generation: 1, Run: &state.Run{
		Job: spec.Addr, Attempt: 1, Spec: spec, NumSlices: 1, Peers: []state.Peer{{Slice: "s", Address: "10.0.0.9"}},
	}})
	task := r.awaitTask(1, schema.TaskUnschedulable)
	if task.Started || !strings.Contains(task.Reason, "10.0.0.9") || r.starts() != 0 {
		t.Errorf("task is %+v", task)
	}
	// An attempt in which the host has no part is carried out by doing nothing.
	r.put(state.Assignment{Slice: "s", Epoch: 1, Generation: 2, Run: &state.Run{
		Job: spec.Addr, Attempt: 2, Spec: spec, NumSlices: 1, Peers: []state.Peer{{Slice: "s", Host: 1, Address: rigAddress}},
	}})
	r.await("generation 2", func(h state.HostReport) bool { return h.Generation == 2 })
}

func TestSecondAgentLeaves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.await("a report", func(state.HostReport) bool { return true })
	second := exec.Command(os.Args[0], "agent", "--store", r.store.Location(), "--slice", "s", "--dir", r.dir,
		"--address", rigAddress)
	if err := second.Run(); err != nil {
		t.Errorf("the second agent says %v", err)
	}
	if now, _ := r.report(); now.Boot != first.Boot {
		t.Error("the second agent has reported")
	}
}

func TestGangPortsAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.await("ports", func(h state.HostReport) bool { return h.CoordinatorPort > 0 && h.MegascalePort > 0 })
	for _, port := range []int{h.CoordinatorPort, h.MegascalePort} {
		if l, err := net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			l.Close()
			t.Errorf("port %d is free to others", port)
		}
	}
	// The task may bind what its agent kept for it.
	spec := job("echo up; exec sleep 1000")
	spec.Resources.Ports = []schema.Port{{Name: "any"}}
	gen := r.assign(&spec)
	task := r.awaitTask(gen, schema.TaskRunning)
	l, err := net.Listen("tcp", ":"+strconv.Itoa(h.CoordinatorPort))
	if err != nil {
		t.Fatalf("while a task runs: %v", err)
	}
	if task.Ports["any"] == 0 {
		t.Errorf("no port was picked: %+v", task)
	}
	stop := r.assign(nil)
	next := r.await("the stop", func(h state.HostReport) bool { return h.Generation == stop })
	if next.CoordinatorPort == h.CoordinatorPort || next.MegascalePort != h.MegascalePort {
		t.Errorf("with the port taken meanwhile, ports were %d %d and are %d %d",
			h.CoordinatorPort, h.MegascalePort, next.CoordinatorPort, next.MegascalePort)
	}
	l.Close()
}

// TestCoordinatorsPortIsTaken: a program that has taken the port of an attempt's coordinator since
// it was offered is no failure of the job.
func TestCoordinatorsPortIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l, err := net.Listen("tcp", net.JoinHostPort(rigAddress, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r.coordinator = l.Addr().String()
	spec := job("exit 0")
	spec.Resources.TPU = "v5litepod-8"
	end := r.awaitTask(r.assign(&spec), schema.TaskWorkerFailed)
	if !strings.HasPrefix(end.Reason, "another program of the host has port ") || !strings.Contains(end.Reason, "which is for JAX_COORDINATOR_ADDRESS") {
		t.Errorf("got %q", end.Reason)
	}
	r.coordinator = ""
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
}

func TestBundleIsTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	project := t.TempDir()
	if err := writeProgram(filepath.Join(project, "run.sh"), "#!/bin/sh\ncat data; echo mine > out; pwd\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(project, "data"), []byte("shipped\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var blob bytes.Buffer
	sum, _, err := bundle.Pack(project, &blob)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.Upload(t.Context(), store.BundleKey(sum), &blob); err != nil {
		t.Fatal(err)
	}
	spec := job("")
	spec.Command = []schema.Text{schema.Plain("./run.sh")}
	spec.Environment.Bundle = sum
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	dir := filepath.Join(r.dir, hostdir.BundlesDir, sum)
	if got := r.output(); got != "shipped\n"+dir+"\n" {
		t.Errorf("output is %q", got)
	}
	if _, err := os.Stat(filepath.Join(project, "out")); err == nil {
		t.Error("the task wrote into the project itself")
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if trees := treesIn(t, filepath.Join(r.dir, hostdir.BundlesDir)); len(trees) != 1 {
		t.Errorf("bundles are %v, want one", trees)
	}
}

// treesIn are the directories in dir; the records of what is in them lie beside them.
func treesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var trees []string
	for _, entry := range entries {
		if entry.IsDir() {
			trees = append(trees, entry.Name())
		}
	}
	return trees
}

func TestManyRestartsLeaveNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var pids []int
	for range 10 {
		spec := job("exec sleep 1000")
		task := r.awaitTask(r.assign(&spec), schema.TaskRunning)
		pids = append(pids, task.PID)
	}
	stop := r.assign(nil)
	r.await("the stop", func(h state.HostReport) bool { return h.Generation == stop })
	r.wantGone(pids...)
}

func TestAgentInProcessEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	s, err := store.CreateDir(filepath.Join(root, "store"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Store: s, Slice: "s", Dir: filepath.Join(root, "host"), Address: rigAddress})
	}()
	eventually(t, "a report", func() bool {
		_, err := s.Get(t.Context(), store.HostKey("s", 0))
		return err == nil
	}, nothing)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	s, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"store":    {Slice: "s", Dir: "/d", Address: "a"},
		"slice":    {Store: s, Dir: "/d", Address: "a"},
		"absolute": {Store: s, Slice: "s", Dir: "d", Address: "a"},
		"address":  {Store: s, Slice: "s", Dir: "/d"},
	} {
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s the error is %v", name, err)
		}
	}
}
