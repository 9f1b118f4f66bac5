package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// place writes which packed tasks the host has, and leaves the rest of its assignment
// as it was.
func (r *rig) place(packed ...string) {
	r.t.Helper()
	a := state.Assignment{Slice: "s", Epoch: r.epoch, Generation: r.generation}
	if object, err := r.store.Get(r.t.Context(), store.AssignKey("s")); err == nil {
		if err := json.Unmarshal(object.Data, &a); err != nil {
			r.t.Fatal(err)
		}
	}
	a.PackedTasks = nil
	for _, name := range packed {
		a.PackedTasks = append(a.PackedTasks, state.PackedTask{Slice: name, CPU: 1})
	}
	a.PackedTasks = append(a.PackedTasks, state.PackedTask{Slice: "elsewhere", Host: 1}, state.PackedTask{Slice: "../outside"})
	r.put(a)
}

// assignPacked makes a packed task run a job.
func (r *rig) assignPacked(name string, generation int64, spec schema.Job) {
	r.t.Helper()
	a := state.Assignment{Slice: name, Epoch: r.epoch, Generation: generation, Run: &state.Run{
		Job: spec.Addr, JobID: "id-" + name, Attempt: 1, Spec: spec, NumSlices: 1,
		Peers: []state.Peer{{Slice: name, Host: 0, Address: rigAddress}}, Coordinator: rigAddress + ":1234",
	}}
	data, err := json.Marshal(a)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.store.Put(r.t.Context(), store.AssignKey(name), data, store.Any); err != nil {
		r.t.Fatal(err)
	}
}

// awaitPacked returns the first report of a packed task that satisfies a condition.
func (r *rig) awaitPacked(name, what string, ok func(state.HostReport) bool) state.HostReport {
	r.t.Helper()
	var h state.HostReport
	eventually(r.t, name+" "+what, func() bool {
		object, err := r.store.Get(r.t.Context(), store.HostKey(name, 0))
		if err != nil {
			return false
		}
		h = state.HostReport{}
		if err := json.Unmarshal(object.Data, &h); err != nil {
			r.t.Fatal(err)
		}
		return ok(h)
	}, func() string { return fmt.Sprintf("last report: %+v", h) })
	return h
}

func (r *rig) awaitPackedRun(name string, want schema.TaskState) state.TaskReport {
	r.t.Helper()
	h := r.awaitPacked(name, "to have a task that is "+string(want), func(h state.HostReport) bool {
		return h.Task != nil && h.Task.State == want
	})
	return *h.Task
}

// awaitPackedTasks waits until the host reports that it serves exactly these.
func (r *rig) awaitPackedTasks(want ...string) {
	r.t.Helper()
	r.await(fmt.Sprintf("the packed tasks to be %v", want), func(h state.HostReport) bool { return slices.Equal(h.PackedTasks, want) })
}

// sleeper notes in the working directory that it starts, and its environment.
func sleeper(name string) schema.Job {
	j := job("echo $$ >> " + name + ".starts; env > " + name + ".env; exec sleep 1000")
	j.Addr.Name = name
	j.Resources.Ports = []schema.Port{{Name: "http"}}
	return j
}

func (r *rig) startsOf(name string) int {
	data, err := os.ReadFile(filepath.Join(r.work, name+".starts"))
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "\n")
}

func TestPackedTasksBesideATask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := sleeper("main")
	gen := r.assign(&spec)
	first := r.awaitTask(gen, schema.TaskRunning)

	r.place("g-0", "g-1")
	r.awaitPackedTasks("g-0", "g-1")
	pids := map[string]int{}
	ports := map[int]string{first.Ports["http"]: "main"}
	for _, name := range []string{"g-0", "g-1"} {
		h := r.awaitPacked(name, "to report", func(h state.HostReport) bool { return h.Address == rigAddress })
		if h.Slice != name || h.Host != 0 || h.CoordinatorPort == 0 {
			t.Errorf("report of %s is %+v", name, h)
		}
		r.assignPacked(name, 1, sleeper(name))
		task := r.awaitPackedRun(name, schema.TaskRunning)
		pids[name] = task.PID
		if other := ports[task.Ports["http"]]; other != "" {
			t.Errorf("%s has the port of %s", name, other)
		}
		ports[task.Ports["http"]] = name
	}
	if task := r.awaitTask(gen, schema.TaskRunning); task.PID != first.PID {
		t.Errorf("the host's own task is process %d, and was %d before there were packed tasks", task.PID, first.PID)
	}
	for _, name := range []string{"elsewhere", "../outside"} {
		if _, err := os.Stat(filepath.Join(r.dir, packedDir, name)); err == nil {
			t.Errorf("%s is served here", name)
		}
	}

	// One is taken off the list: its task ends, and nothing else.
	r.place("g-1")
	r.awaitPackedTasks("g-1")
	r.wantGone(pids["g-0"])
	if _, err := os.Stat(filepath.Join(r.dir, packedDir, "g-0")); !os.IsNotExist(err) {
		t.Errorf("the directory of a packed task that is gone: %v", err)
	}
	r.awaitPackedRun("g-0", schema.TaskKilled)
	if !alive(pids["g-1"]) || !alive(first.PID) {
		t.Error("another task ended with it")
	}

	// The host's own task ends, and no packed one.
	r.generation++
	r.put(state.Assignment{Slice: "s", Epoch: r.epoch, Generation: r.generation, PackedTasks: []state.PackedTask{{Slice: "g-1", CPU: 1}}})
	r.awaitTask(gen, schema.TaskKilled)
	if !alive(pids["g-1"]) {
		t.Error("a packed task ended with the host's own")
	}
	for _, name := range []string{"main", "g-0", "g-1"} {
		if n := r.startsOf(name); n != 1 {
			t.Errorf("%s was started %d times", name, n)
		}
	}
	r.place()
	r.awaitPackedTasks()
}

func TestPackedTasksAreAdopted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := sleeper("main")
	gen := r.assign(&spec)
	pids := map[string]int{"main": r.awaitTask(gen, schema.TaskRunning).PID}
	r.place("g-0", "g-1")
	r.awaitPackedTasks("g-0", "g-1")
	boots := map[string]string{}
	for _, name := range []string{"g-0", "g-1"} {
		r.awaitPacked(name, "to report", func(h state.HostReport) bool { return h.Address != "" })
		r.assignPacked(name, 1, sleeper(name))
		pids[name] = r.awaitPackedRun(name, schema.TaskRunning).PID
		boots[name] = r.awaitPacked(name, "to run", func(state.HostReport) bool { return true }).Boot
	}
	r.killAgent()
	r.place("g-1") // while no agent runs
	r.startAgent()
	r.awaitPackedTasks("g-1")
	r.wantGone(pids["g-0"])
	h := r.awaitPacked("g-1", "to be adopted", func(h state.HostReport) bool {
		return h.Boot != boots["g-1"] && h.Task != nil && h.Task.State == schema.TaskRunning
	})
	if h.Task.PID != pids["g-1"] || !alive(pids["g-1"]) || !alive(pids["main"]) {
		t.Errorf("tasks after a restart of the agent: %+v, want process %d", h.Task, pids["g-1"])
	}
	for name := range pids {
		if n := r.startsOf(name); n != 1 {
			t.Errorf("%s was started %d times", name, n)
		}
	}
	r.place()
	r.awaitPackedTasks()
	r.wantGone(pids["g-1"])
	r.assign(nil)
	r.awaitTask(gen, schema.TaskKilled)
}

func TestAnAgentEndsItsPackedTasks(t *testing.T) {
	t.Parallel()
	tests := map[string]func(r *rig){
		"that is told to": func(r *rig) { r.stopAgent() },
		"that only ends what is left": func(r *rig) {
			r.killAgent()
			r.startAgent("--end")
			<-r.gone
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.place("g-0")
			r.awaitPackedTasks("g-0")
			r.assignPacked("g-0", 1, sleeper("g-0"))
			pid := r.awaitPackedRun("g-0", schema.TaskRunning).PID
			end(r)
			r.wantGone(pid)
			r.awaitPackedRun("g-0", schema.TaskKilled)
			if _, err := os.Stat(filepath.Join(r.dir, "dirty")); !os.IsNotExist(err) {
				t.Errorf("the host is marked as if something were left: %v", err)
			}
		})
	}
}

func TestPackedTasksHeedTheHostsNotice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.place("g-0", "g-1")
	r.awaitPackedTasks("g-0", "g-1")
	r.assignPacked("g-0", 1, sleeper("g-0"))
	r.awaitPackedRun("g-0", schema.TaskRunning)
	if err := os.WriteFile(filepath.Join(r.dir, hostdir.PreemptedFile), []byte("maintenance\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if task := r.awaitPackedRun("g-0", schema.TaskPreempted); task.Reason != "maintenance" {
		t.Errorf("ended for %q", task.Reason)
	}
	r.assignPacked("g-1", 1, sleeper("g-1"))
	r.awaitPackedRun("g-1", schema.TaskPreempted)
	if n := r.startsOf("g-1"); n != 0 {
		t.Errorf("a task was started on a host with notice")
	}
}
