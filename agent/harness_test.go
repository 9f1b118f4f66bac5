package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/agent/shim"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// TestMain lets the test program stand in for fray: as an agent and as a shim.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			os.Exit(exitCode(agentMain(os.Args[2:])))
		case "task-shim":
			os.Exit(exitCode(shim.Run(os.Stdin, os.Stdout)))
		case "fake-docker":
			os.Exit(fakeDockerClient(os.Args[2], os.Args[3:]))
		}
	}
	// A shell has its background jobs ignore SIGINT, and what they start inherits that:
	// no shell can trap a signal that was ignored when it began.
	if signal.Ignored(syscall.SIGINT) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
	// Under the race detector each process would linger for a second.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		os.Exit(exitCode(err))
	}
	os.Exit(m.Run())
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func agentMain(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a, err := ParseArgs(args)
	if err != nil {
		return err
	}
	c := a.Config()
	if c.Store, err = store.OpenDir(a.Store); err != nil {
		return err
	}
	c.Version, c.Sealer = "test", rot{}
	if token := os.Getenv(registryTokenEnv); token != "" {
		c.RegistryToken = func(_ context.Context, registry string) (string, string, error) {
			if !strings.HasSuffix(registry, ".pkg.dev") {
				return "", "", nil
			}
			return "oauth2accesstoken", token, nil
		}
	}
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	return Run(ctx, c)
}

// registryTokenEnv is what an agent logs in with at registries of *.pkg.dev.
const registryTokenEnv = "AGENT_TEST_REGISTRY_TOKEN"

// rot is a Sealer whose sealed form does not contain the secret.
type rot struct{}

func (rot) Seal(s string) (string, error) { return shift(s, 1), nil }
func (rot) Open(s string) (string, error) { return shift(s, -1), nil }

func shift(s string, by rune) string {
	return strings.Map(func(r rune) rune { return r + by }, s)
}

// rig is a slice of one host with its store.
type rig struct {
	coordinator string // of attempts; "": at any port

	t     *testing.T
	store *store.Dir
	dir   string // of the host
	work  string
	agent *exec.Cmd
	gone  chan struct{} // closed when the agent's process is

	path       string   // PATH of the agent, "" for the test's own
	env        []string // more of its variables
	nohup      bool     // the agent ignores hangups, as what started it
	generation int64
	epoch      uint64
	stack      string // the mark in assignments
	issuer     *keys.Issuer
}

const rigAddress = "127.0.0.1"

func newRig(t *testing.T) *rig { return newRigIn(t, t.TempDir()) }

// newRigIn is a rig whose host is in root/host and whose store is in root/store.
func newRigIn(t *testing.T, root string) *rig {
	t.Helper()
	s, err := store.CreateDir(filepath.Join(root, "store"))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: s, dir: filepath.Join(root, "host"), work: filepath.Join(root, "work"), epoch: 1}
	if err := os.Mkdir(r.work, 0o700); err != nil {
		t.Fatal(err)
	}
	publishKeys(t, s, time.Now())
	r.startAgent()
	t.Cleanup(func() {
		r.killTask()
		r.stopAgent()
	})
	return r
}

func (r *rig) startAgent(extra ...string) {
	r.t.Helper()
	args := append([]string{"agent", "--store", r.store.Location(), "--slice", "s", "--host", "0",
		"--dir", r.dir, "--address", rigAddress, "--work-dir", r.work, "--simulated"}, extra...)
	words := append([]string{os.Args[0]}, args...)
	if r.nohup {
		words = append([]string{"nohup"}, words...)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(append(os.Environ(), "FRAY_VAR_x=1"), r.env...)
	if r.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+r.path)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	log, err := os.OpenFile(filepath.Join(filepath.Dir(r.dir), "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	log.Close()
	r.agent, r.gone = cmd, make(chan struct{})
	go func(gone chan struct{}) {
		defer close(gone)
		_ = cmd.Wait()
	}(r.gone)
}

// killAgent ends the agent without a word.
func (r *rig) killAgent() {
	r.t.Helper()
	_ = r.agent.Process.Kill()
	<-r.gone
}

// stopAgent asks the agent to end, as it does when a test is over.
func (r *rig) stopAgent() {
	r.t.Helper()
	_ = r.agent.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.gone:
	case <-time.After(patience):
		r.t.Error("the agent does not end")
		r.killAgent()
	}
}

// killTask makes sure that no test leaves a task behind, even with a broken agent.
func (r *rig) killTask() {
	in, err := (&hostdir.Dir{Path: r.dir}).LastIntent()
	if err != nil || in == nil || !r.t.Failed() {
		return
	}
	var proc hostdir.ProcessRecord
	_ = record.Read((&hostdir.Dir{Path: r.dir}).Task(in.Key).File(hostdir.ProcessFile), &proc)
	if err := process.Sweep(proc.Traces(in.Nonce)); err != nil {
		r.t.Error(err)
	}
	log, _ := os.ReadFile(filepath.Join(filepath.Dir(r.dir), "agent.log"))
	r.t.Logf("agent's log:\n%s", log)
}

// job is a job that runs a shell script.
func job(script string) schema.Job {
	return schema.Job{
		Addr:      schema.Address{Kind: schema.KindJob, Name: "a"},
		Namespace: "default",
		Command:   []schema.Text{schema.Plain("/bin/sh"), schema.Plain("-c"), schema.Plain(script)},
		Resources: schema.Resources{Provider: schema.ProviderLocal, Slices: 1},
		StopGrace: schema.Duration(2 * time.Second),
	}
}

// assign writes the next assignment, which runs a job, or nothing for nil.
func (r *rig) assign(spec *schema.Job) int64 {
	r.t.Helper()
	r.generation++
	a := state.Assignment{Slice: "s", Stack: r.stack, Epoch: r.epoch, Generation: r.generation}
	if spec != nil {
		a.Run = &state.Run{
			Job: spec.Addr, JobID: "id-1", Attempt: int(r.generation), Spec: *spec, NumSlices: 1,
			Accelerator: spec.Resources.TPU, GPU: spec.Resources.GPU,
			Peers:       []state.Peer{{Slice: "s", Host: 0, Address: rigAddress}},
			Coordinator: cmp.Or(r.coordinator, rigAddress+":0"),
		}
	}
	r.certify(&a)
	r.put(a)
	return r.generation
}

// certify does what who leads does, where the rig has a stack.
func (r *rig) certify(a *state.Assignment) {
	r.t.Helper()
	if r.stack == "" {
		return
	}
	if r.issuer == nil {
		r.issuer = keys.NewIssuer(r.store, r.epoch)
	}
	h := r.await("an identity key", func(h state.HostReport) bool { return h.IdentityKey != nil })
	if err := r.issuer.Certify(r.t.Context(), a, []state.HostReport{h}); err != nil {
		r.t.Fatal(err)
	}
}

// reassign writes the assignment again, with other certificates and nothing else.
func (r *rig) reassign() {
	r.t.Helper()
	object, err := r.store.Get(r.t.Context(), store.AssignKey("s"))
	if err != nil {
		r.t.Fatal(err)
	}
	var a state.Assignment
	if err := json.Unmarshal(object.Data, &a); err != nil {
		r.t.Fatal(err)
	}
	a.Run.Certificates = nil
	r.certify(&a)
	r.put(a)
}

func (r *rig) put(a state.Assignment) {
	r.t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.store.Put(r.t.Context(), store.AssignKey("s"), data, store.Any); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) report() (state.HostReport, bool) {
	object, err := r.store.Get(context.Background(), store.HostKey("s", 0))
	if err != nil {
		return state.HostReport{}, false
	}
	var h state.HostReport
	if err := json.Unmarshal(object.Data, &h); err != nil {
		r.t.Fatal(err)
	}
	return h, true
}

// await returns the first report that satisfies a condition.
func (r *rig) await(what string, ok func(state.HostReport) bool) state.HostReport {
	r.t.Helper()
	var last state.HostReport
	eventually(r.t, what, func() bool {
		h, found := r.report()
		last = h
		return found && ok(h)
	}, func() string {
		data, _ := json.Marshal(last)
		return "last report: " + string(data)
	})
	return last
}

// awaitTask waits until the task of a generation is in a state.
func (r *rig) awaitTask(generation int64, want schema.TaskState) state.TaskReport {
	r.t.Helper()
	h := r.await("task of generation "+strconv.FormatInt(generation, 10)+" to be "+string(want), func(h state.HostReport) bool {
		return h.Task != nil && h.Task.Generation == generation && h.Task.State == want
	})
	return *h.Task
}

// output is everything the last task has shipped.
func (r *rig) output() string {
	r.t.Helper()
	var all []byte
	for from := int64(0); ; {
		data, next, err := tailLogs(r.t.Context(), r.store, "id-1", int(r.generation), 0, from)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(data) == 0 {
			return string(all)
		}
		all, from = append(all, data...), next
	}
}

// patience is far more than anything of a test takes, on any machine.
const patience = 5 * time.Minute

// eventually polls a condition until it holds.
func eventually(t *testing.T, what string, ok func() bool, detail func() string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s; %s", what, detail())
		case <-tick.C:
		}
	}
}

func nothing() string { return "" }

// alive reports whether a process runs.
func alive(pid int) bool {
	all, err := process.List()
	if err != nil {
		return false
	}
	for _, p := range all {
		if p.PID == pid {
			return true
		}
	}
	return false
}

var errOnePart = errors.New("one part is enough")

// tailLogs is what a task of a job, named by its id, has written from an offset
// on, at most one chunk of it, and the offset that follows.
func tailLogs(ctx context.Context, s store.Store, job string, attempt, task int, from int64) (data []byte, next int64, err error) {
	_, err = store.ReadLog(ctx, s, store.LogName{Job: job, Attempt: attempt, Task: task}, from, func(part []byte) error {
		data = bytes.Clone(part)
		return errOnePart
	})
	if errors.Is(err, errOnePart) {
		err = nil
	}
	return data, from + int64(len(data)), err
}
