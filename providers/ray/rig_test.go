package ray_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/agent/shim"
	"github.com/fray-ml/fray/providers/ray"
	"github.com/fray-ml/fray/providers/ray/raytest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// TestMain lets the test program stand in for fray on the nodes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			os.Exit(exitCode(agentMain(os.Args[2:])))
		case "task-shim":
			os.Exit(exitCode(shim.Run(os.Stdin, os.Stdout)))
		}
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

// place is a store on a cluster.
type place struct {
	t       *testing.T
	cluster *raytest.Cluster
	store   *store.Dir
}

func newPlace(t *testing.T, c *raytest.Cluster) *place {
	t.Helper()
	s, err := store.CreateDir(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return &place{t: t, cluster: c, store: s}
}

func (p *place) provider() *ray.Provider {
	p.t.Helper()
	provider, err := ray.New(ray.Config{
		Address: p.cluster.URL, TokenFile: p.cluster.Token, StoreLocation: p.store.Location(),
		Program: os.Executable,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return provider
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

// reported counts the hosts of a slice whose agents live and have reported.
func (p *place) reported(slice string, hosts int) int {
	n := 0
	for host := range hosts {
		if h, ok := p.report(slice, host); ok && alive(h.PID) {
			n++
		}
	}
	return n
}

// left is what is there of a slice: directories of hosts and agents.
func (p *place) left(slice string, hosts int) []string {
	left, err := filepath.Glob(filepath.Join(p.cluster.Temp, "fray-ray-*", "hosts", "fray_"+slice+"_*"))
	if err != nil {
		p.t.Fatal(err)
	}
	for host := range hosts {
		if h, ok := p.report(slice, host); ok && alive(h.PID) {
			left = append(left, fmt.Sprintf("agent %d", h.PID))
		}
	}
	return left
}

// assign has all hosts of a slice run a shell script.
func (p *place) assign(spec schema.SliceSpec, generation int64, script string) {
	p.t.Helper()
	address := schema.Address{Kind: schema.KindJob, Name: "j"}
	a := state.Assignment{Slice: spec.Name, Epoch: 1, Generation: generation, Run: &state.Run{
		Job: address, JobID: "id", Attempt: int(generation), NumSlices: 1, GPU: spec.GPU,
		Spec: schema.Job{
			Addr: address, Namespace: "default", StopGrace: schema.Duration(time.Second),
			Command: []schema.Text{schema.Plain("/bin/sh"), schema.Plain("-c"), schema.Plain(script)},
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

// up creates a slice and waits until its hosts report.
func (p *place) up(provider *ray.Provider, spec schema.SliceSpec) {
	p.t.Helper()
	if err := provider.Create(p.t.Context(), spec); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { p.down(provider, spec) })
	p.eventually("hosts to report", func() bool { return p.reported(spec.Name, spec.Hosts) == spec.Hosts })
}

// down deletes a slice and waits until it is gone.
func (p *place) down(provider *ray.Provider, spec schema.SliceSpec) {
	p.t.Helper()
	ctx := context.Background()
	p.eventually(spec.Name+" to be gone", func() bool {
		if err := provider.Delete(ctx, spec); err != nil {
			p.t.Fatal(err)
		}
		_, found, err := provider.Get(ctx, spec)
		return err == nil && !found
	})
}

// status is how a slice is listed, zero where it is not.
func (p *place) status(provider *ray.Provider, spec schema.SliceSpec) schema.SliceStatus {
	p.t.Helper()
	in, err := provider.Inventory(p.t.Context(), spec.Stack)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range in.Slices {
		if in.Slices[i].Spec.Name == spec.Name {
			return in.Slices[i]
		}
	}
	return schema.SliceStatus{}
}

// patience is far more than anything of a test takes, on any machine.
const patience = 5 * time.Minute

func (p *place) eventually(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			p.t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z"
}

// spec is a small slice.
func spec(name string, hosts int) schema.SliceSpec {
	return schema.SliceSpec{
		Name: name, Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"},
		Provider: schema.ProviderRay, CPU: 1, Hosts: hosts,
	}
}

// python is an interpreter with ray[default], which scripts/test-engines names; without one the test skips.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("FRAY_TEST_RAY_PYTHON")
	if name == "" {
		t.Skip("set FRAY_TEST_RAY_PYTHON to a Python interpreter with ray[default] to run this on a real Ray cluster, as scripts/test-engines does")
	}
	return name
}

// long skips a test that takes minutes.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("FRAY_TEST_RAY_LONG") == "" {
		t.Skip("set FRAY_TEST_RAY_LONG=1 to run this: it takes minutes")
	}
}
