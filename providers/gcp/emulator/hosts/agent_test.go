package hosts

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/providers/gcp/host"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// world is a bucket with fray's own program, and machines that boot from it.
type world struct {
	t          *testing.T
	store      store.Store
	hosts      *Hosts
	boot       host.Bootstrap
	generation int64
}

func newWorld(t *testing.T, program []byte) *world {
	t.Helper()
	service, err := storage.New(storage.Config{Buckets: []storage.Bucket{{Name: "acme"}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	bucket, err := bucket.Open(t.Context(), bucket.Config{Bucket: "acme", Prefix: "rl/math", WriteInterval: 20e6})
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(program)
	sum := hex.EncodeToString(digest[:])
	if err := bucket.Upload(t.Context(), store.BundleKey(sum), bytes.NewReader(program)); err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{Dir: t.TempDir(), Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		wantNothingLeft(t, h.config.Dir)
	})
	return &world{
		t: t, store: bucket, hosts: h,
		boot: host.Bootstrap{Store: "gs://acme/rl/math", AgentSHA256: sum, AgentVersion: "test"},
	}
}

// programVariable names a fray that scripts/test has built already.
const programVariable = "FRAY_TEST_PROGRAM"

// program is fray, built and compressed as it is shipped.
func program(t *testing.T) []byte {
	t.Helper()
	file := os.Getenv(programVariable)
	if file == "" {
		file = filepath.Join(t.TempDir(), "fray")
		build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "github.com/fray-ml/fray/cmd/fray")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build fray: %v\n%s", err, output)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// group are the machines of a slice of 16 chips.
func (w *world) group(name string, kind cloud.Kind, engine schema.Engine) []cloud.Machine {
	w.t.Helper()
	const workers = 4
	spec := schema.SliceSpec{
		Name: name, Stack: "st", Provider: schema.ProviderGCP, TPU: "v5litepod-16", Hosts: workers, Zone: "us-west4-a",
		Cloud: schema.CloudSpec{Engine: engine},
	}
	attributes, err := w.boot.Metadata(spec)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		w.t.Fatal(err)
	}
	attributes["fray-spec"] = string(data)
	machines := make([]cloud.Machine, workers)
	addresses := make([]string, workers)
	for i := range machines {
		addresses[i] = fmt.Sprintf("10.129.%d.%d", len(name), i+2)
		machines[i] = cloud.Machine{
			ID: fmt.Sprintf("%s-w-%d", name, i), Name: name, Instance: fmt.Sprintf("%s-w-%d", name, i), Kind: kind,
			Zone: spec.Zone, Project: "acme", Worker: i, Workers: workers, AcceleratorType: spec.TPU, Addresses: addresses,
			Metadata: attributes, Preemptible: true,
		}
	}
	return machines
}

func (w *world) report(slice string, host int) (state.HostReport, bool) {
	var r state.HostReport
	object, err := w.store.Get(w.t.Context(), store.HostKey(slice, host))
	if err != nil {
		return r, false
	}
	if err := json.Unmarshal(object.Data, &r); err != nil {
		w.t.Fatal(err)
	}
	return r, r.PID != 0 // else it is a claim
}

// await returns the first report of a host that satisfies a condition.
func (w *world) await(slice string, host int, what string, ok func(state.HostReport) bool) state.HostReport {
	w.t.Helper()
	var last state.HostReport
	eventually(w.t, fmt.Sprintf("%s of host %d of %s", what, host, slice), func() bool {
		r, there := w.report(slice, host)
		last = r
		return there && ok(r)
	}, func() string {
		data, _ := json.Marshal(last)
		id := fmt.Sprintf("%s-w-%d", slice, host)
		agent, _ := os.ReadFile(filepath.Join(w.hosts.Disk(id), rootDir, "agent.log"))
		return fmt.Sprintf("last report: %s\n%s\nthe agent: %s", data, console(w.hosts, id)(), agent)
	})
	return last
}

// assign runs a shell script on every host of a slice.
func (w *world) assign(slice, script string) {
	w.t.Helper()
	w.generation++
	addr := schema.Address{Kind: schema.KindJob, Name: "train"}
	run := &state.Run{
		Job: addr, JobID: "id-1", Attempt: int(w.generation), NumSlices: 1, Accelerator: "v5litepod-16",
		Spec: schema.Job{
			Addr: addr, Namespace: "default", StopGrace: schema.Duration(60e9),
			Command:   []schema.Text{schema.Plain("/bin/sh"), schema.Plain("-c"), schema.Plain(script)},
			Resources: schema.Resources{Provider: schema.ProviderGCP, TPU: "v5litepod-16", Slices: 1},
		},
	}
	for host := range 4 {
		r, _ := w.report(slice, host)
		run.Peers = append(run.Peers, state.Peer{Slice: slice, Host: host, Address: r.Address})
	}
	run.Coordinator = run.Peers[0].Address + ":8476"
	data, err := json.Marshal(state.Assignment{Slice: slice, Epoch: 1, Generation: w.generation, Run: run})
	if err == nil {
		_, err = w.store.Put(w.t.Context(), store.AssignKey(slice), data, store.Any)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// awaitNoBoot waits until no machine has a status beside its reports, which its agent
// removes.
func (w *world) awaitNoBoot() {
	w.t.Helper()
	var left []store.Attrs
	eventually(w.t, "the removal of the statuses of machines that report", func() bool {
		var err error
		left, err = w.store.List(w.t.Context(), store.BootPrefix)
		return err == nil && len(left) == 0
	}, func() string { return fmt.Sprint(left) })
}

func inState(want schema.TaskState) func(state.HostReport) bool {
	return func(r state.HostReport) bool { return r.Task != nil && r.Task.State == want }
}

func isUp(state.HostReport) bool { return true }

// TestAgents boots real agents by the real script, from a bucket.
func TestAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds fray")
	}
	packed := program(t)
	t.Run("node", func(t *testing.T) { testNode(t, newWorld(t, packed)) })
	t.Run("instance group", func(t *testing.T) { testGroup(t, newWorld(t, packed)) })
}

func testNode(t *testing.T, w *world) {
	machines := w.group("node-a", cloud.KindNode, schema.EngineTPU)
	for _, m := range machines {
		w.hosts.Start(m)
	}
	var addresses []string
	for host, m := range machines {
		r := w.await("node-a", host, "a report", isUp)
		if r.Address != loopback(m.Addresses[host]) {
			t.Errorf("host %d is at %s, want %s", host, r.Address, loopback(m.Addresses[host]))
		}
		addresses = append(addresses, r.Address)
		if got := w.hosts.GuestAttributes(m.ID)["fray/status"]; !strings.HasPrefix(got, "running: fray ") {
			t.Errorf("host %d says %q, want that it runs", host, got)
		}
	}
	w.awaitNoBoot()
	w.assign("node-a", `trap 'echo saved; exit 0' TERM
echo "$TPU_WORKER_ID $TPU_WORKER_HOSTNAMES $JAX_PROCESS_ID $JAX_PLATFORMS"; sleep 1000 & wait`)
	for host := range machines {
		w.await("node-a", host, "a running task", inState(schema.TaskRunning))
	}
	greeting := "1 " + strings.Join(addresses, ",") + " 1 cpu\n"
	written := func() string {
		chunk, _ := w.store.Get(t.Context(), store.LogKey("id-1", 1, 1, 0)) // none yet is as good as an empty one
		return string(chunk.Data)
	}
	eventually(t, "host 1's task to have set its trap", func() bool { return written() == greeting }, written)
	w.hosts.Notice(machines[1].ID, cloud.EventPreemption)
	r := w.await("node-a", 1, "the end of its task", inState(schema.TaskPreempted))
	if r.Notice != "preempted by Compute Engine" || r.Task.Reason != r.Notice || r.Task.ExitCode == nil || *r.Task.ExitCode != 0 {
		t.Errorf("host 1 reports %+v of its task, and notice %q; want that SIGTERM reached it", r.Task, r.Notice)
	}
	if got, want := written(), greeting+"saved\n"; got != want {
		t.Errorf("its log is %q, want %q", got, want)
	}

	// Without notice: power is cut, and comes back.
	before, _ := w.report("node-a", 0)
	w.hosts.Stop(machines[0].ID)
	wantNothingLeft(t, filepath.Join(w.hosts.config.Dir, machines[0].ID))
	w.hosts.Start(machines[0])
	after := w.await("node-a", 0, "the end of a task that was lost", inState(schema.TaskExitUnknown))
	if after.Boot == before.Boot || after.Seq <= before.Seq {
		t.Errorf("after the reboot: boot %s, seq %d; before: %s, %d", after.Boot, after.Seq, before.Boot, before.Seq)
	}
	for _, m := range machines {
		w.hosts.Remove(m.ID)
	}
	wantNothingLeft(t, w.hosts.config.Dir)
}

func testGroup(t *testing.T, w *world) {
	machines := w.group("mig-b", cloud.KindGroup, schema.EngineGCE)
	for _, m := range machines {
		w.hosts.Start(m)
	}
	byInstance := map[string]int{}
	var addresses []string
	for host := range machines {
		r := w.await("mig-b", host, "a report", isUp)
		byInstance[r.Instance] = host
		addresses = append(addresses, r.Address)
	}
	if len(byInstance) != len(machines) || len(slices.Compact(slices.Sorted(slices.Values(addresses)))) != len(machines) {
		t.Errorf("claimed %v by machines at %v, want a number for each", byInstance, addresses)
	}
	w.awaitNoBoot()
	// A reboot finds its own number again.
	before, _ := w.report("mig-b", 2)
	i := slices.IndexFunc(machines, func(m cloud.Machine) bool { return loopback(m.Addresses[m.Worker]) == before.Address })
	w.hosts.Stop(machines[i].ID)
	w.hosts.Start(machines[i])
	after := w.await("mig-b", 2, "another boot", func(r state.HostReport) bool { return r.Boot != before.Boot })
	if after.Instance != before.Instance || after.Address != before.Address {
		t.Errorf("host 2 was %s at %s, and is %s at %s", before.Instance, before.Address, after.Instance, after.Address)
	}
}
