package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/agent/shim"
	"github.com/fray-ml/fray/providers/local"
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
		case "create":
			os.Exit(exitCode(creatorMain(os.Args[2:])))
		case "task-shim":
			os.Exit(exitCode(shim.Run(os.Stdin, os.Stdout)))
		}
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
	a, err := agent.ParseArgs(args)
	if err != nil {
		return err
	}
	c := a.Config()
	if c.Store, err = store.OpenDir(a.Store); err != nil {
		return err
	}
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	return agent.Run(ctx, c)
}

// place is a root directory for slices with the store of their agents.
type place struct {
	t     *testing.T
	root  string
	work  string
	store *store.Dir
	ports []schema.Port // of the jobs that assign runs
	gpu   schema.GPU    // likewise
}

func newPlace(t *testing.T) *place {
	t.Helper()
	top := t.TempDir()
	s, err := store.CreateDir(filepath.Join(top, "store"))
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: filepath.Join(top, "local"), work: filepath.Join(top, "work"), store: s}
	if err := os.Mkdir(p.work, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) provider() *local.Provider {
	p.t.Helper()
	provider, err := local.New(p.config())
	if err != nil {
		p.t.Fatal(err)
	}
	return provider
}

func (p *place) config() local.Config {
	return local.Config{
		Root: p.root, Executable: os.Args[0], StoreLocation: p.store.Location(), WorkDir: p.work,
		DeleteGrace: 5 * time.Second,
	}
}

// agents are the processes that serve the first host of a slice.
func (p *place) agents(slice string) []int {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "ps", "-axww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		p.t.Fatal(err)
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[1], "Z") || !slices.Contains(fields, "agent") || !slices.Contains(fields, p.hostDir(slice, 0)) {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil {
			p.t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

func (p *place) hostDir(slice string, host int) string {
	return filepath.Join(p.root, "slices", slice, "hosts", strconv.Itoa(host))
}

// lockHolder is the process that holds a lock of a host.
func (p *place) lockHolder(slice string, host int, lock string) int {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.hostDir(slice, host), lock))
	if err != nil {
		p.t.Fatal(err)
	}
	var who struct{ PID int }
	if err := json.Unmarshal(data, &who); err != nil {
		p.t.Fatal(err)
	}
	return who.PID
}

func (p *place) kill(pid int) { p.signal(pid, syscall.SIGKILL) }
func (p *place) stop(pid int) { p.signal(pid, syscall.SIGSTOP) }

func (p *place) signal(pid int, sig syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.t.Fatal(err)
	}
}

func (p *place) report(slice string, host int) (state.HostReport, bool) {
	p.t.Helper()
	object, err := p.store.Get(context.Background(), store.HostKey(slice, host))
	if errors.Is(err, store.ErrNotFound) {
		return state.HostReport{}, false
	}
	if err != nil {
		p.t.Fatal(err)
	}
	var h state.HostReport
	if err := json.Unmarshal(object.Data, &h); err != nil {
		p.t.Fatal(err)
	}
	return h, true
}

// spec is a small slice; the store's reports of an earlier one are forgotten.
func spec(name string, hosts int) schema.SliceSpec {
	return schema.SliceSpec{
		Name: name, Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"},
		Provider: schema.ProviderLocal, CPU: 1, Hosts: hosts,
	}
}

// assign makes all hosts of a slice run a shell script.
func (p *place) assign(spec schema.SliceSpec, generation int64, script string) {
	p.t.Helper()
	address := schema.Address{Kind: schema.KindJob, Name: "j"}
	a := state.Assignment{Slice: spec.Name, Epoch: 1, Generation: generation, Run: &state.Run{
		Job: address, JobID: "id", Attempt: int(generation), NumSlices: 1, GPU: p.gpu,
		Spec: schema.Job{
			Addr: address, Namespace: "default", StopGrace: schema.Duration(time.Second),
			Resources: schema.Resources{Ports: p.ports},
			Command:   []schema.Text{schema.Plain("/bin/sh"), schema.Plain("-c"), schema.Plain(script)},
		},
	}}
	for n := range spec.Hosts {
		h, _ := p.report(spec.Name, n)
		a.Run.Peers = append(a.Run.Peers, state.Peer{Slice: spec.Name, Host: n, Address: h.Address})
	}
	data, err := json.Marshal(a)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.store.Put(p.t.Context(), store.AssignKey(spec.Name), data, store.Any); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) awaitTasks(spec schema.SliceSpec, generation int64, state schema.TaskState) {
	p.t.Helper()
	eventually(p.t, "tasks to be "+string(state), func() bool {
		for n := range spec.Hosts {
			h, ok := p.report(spec.Name, n)
			if !ok || h.Task == nil || h.Task.Generation != generation || h.Task.State != state {
				return false
			}
		}
		return true
	})
}

// up creates a slice and waits until its hosts have reported in.
func (p *place) up(provider *local.Provider, spec schema.SliceSpec) {
	p.t.Helper()
	if err := provider.Create(p.t.Context(), spec); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { p.down(provider, spec) })
	eventually(p.t, "hosts to report in", func() bool {
		for n := range spec.Hosts {
			if _, ok := p.report(spec.Name, n); !ok {
				return false
			}
		}
		return true
	})
}

// down deletes a slice and waits until it is gone.
func (p *place) down(provider *local.Provider, spec schema.SliceSpec) {
	p.t.Helper()
	eventually(p.t, spec.Name+" to be gone", func() bool {
		if err := provider.Delete(context.Background(), spec); err != nil {
			p.t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(p.root, "slices", spec.Name))
		return errors.Is(err, os.ErrNotExist)
	})
}

// patience is far more than anything of a test takes, on any machine.
const patience = 5 * time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !isProc()
	}
	var state string
	_, _ = fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), "%s", &state)
	return state != "Z"
}

// isSuspended reports whether a process was stopped by a signal.
func isSuspended(ctx context.Context, pid int) bool {
	out, err := exec.CommandContext(ctx, "ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), "T")
}

func isProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
