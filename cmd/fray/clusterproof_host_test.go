package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// TestClusterHostsKilled kills agents, tasks and whole hosts of parent and
// children with SIGKILL. The end of an agent alone costs no task anything; that
// of a task or a host costs the attempt, and its endpoint (facts 22, 31, 36).
func TestClusterHostsKilled(t *testing.T) {
	t.Parallel()
	p := newClusterProof(t, nil, "", 6)
	p.watch(t)
	p.awaitLeader(t, 0)
	launcher := p.pid(t, "parent", 1)
	begin := func(child string) int {
		p.allow(t, "go-"+child)
		pid := p.pid(t, child, 1)
		p.awaitNote(t, "told", "registered "+child+" 1")
		return pid
	}

	// Before it is assigned: every agent that has nothing to do.
	p.killIdleAgents(t)
	begin("child-0")

	// The parent's, while it makes a call.
	p.killAgent(t, launcher)
	runs := begin("child-1")

	// The child's, while it runs, and again when it has ended.
	p.killAgent(t, runs)
	if err := syscall.Kill(runs, 0); err != nil {
		t.Errorf("child-1, pid %d: %v", runs, err)
	}
	ends := begin("child-2")
	p.killAgent(t, ends)
	p.allow(t, "end-child-2")

	// The task itself.
	p.kill(t, begin("child-3"))
	p.awaitNote(t, "told", "registered child-3 2")

	// A whole host: its endpoint goes with it.
	task := begin("child-4")
	p.awaitEndpoint(t, "at-child-4 1", true)
	victim := p.host(t, task)
	p.kill(t, victim.PID, parent(task), task)
	p.awaitNote(t, "told", "registered child-4 2")
	p.awaitEndpoint(t, "at-child-4 2", true)
	p.awaitEndpoint(t, "at-child-4 1", false)
	p.awaitEndpoint(t, "at-child-2 1", false) // which has ended
	p.awaitEndpoint(t, "at-parent 1", true)

	begin("child-5")
	if err := syscall.Kill(launcher, 0); err != nil {
		t.Errorf("the parent, pid %d: %v", launcher, err)
	}
	p.finish(t, map[string]int{"child-3": 2, "child-4": 2})
	for addr, j := range p.document(t).Jobs {
		if j.Launch == nil {
			continue
		}
		want := 0
		if j.Launch.Name == "child-3" {
			want = 1
		}
		if j.Failures != want {
			t.Errorf("%s has spent %d failures, want %d", addr, j.Failures, want)
		}
	}
}

func (p *clusterProof) kill(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("kill %d: %v", pid, err)
		}
	}
}

// killAgent kills the agent of the host that reports a task.
func (p *clusterProof) killAgent(t *testing.T, task int) {
	t.Helper()
	p.kill(t, p.host(t, task).PID)
}

// killIdleAgents kills the agents of hosts that run nothing, once all of them have reported.
func (p *clusterProof) killIdleAgents(t *testing.T) {
	t.Helper()
	var idle []int
	if err := within(proofPatience, func() error {
		if idle = p.idle(t); len(idle) != p.children {
			return fmt.Errorf("%d agents have nothing to do, want %d", len(idle), p.children)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.kill(t, idle...)
}

// idle are the agents that live and have nothing to do.
func (p *clusterProof) idle(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, r := range p.hosts(t) {
		if r.Task == nil && letter(r.PID) != 'Z' {
			pids = append(pids, r.PID)
		}
	}
	return pids
}

// hosts are the reports of all hosts.
func (p *clusterProof) hosts(t *testing.T) []state.HostReport {
	t.Helper()
	st, err := p.store(t)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := st.List(t.Context(), store.HostsPrefix)
	if err != nil {
		t.Fatal(err)
	}
	var found []state.HostReport
	for _, each := range listed {
		object, err := st.Get(t.Context(), each.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var r state.HostReport
		if err := json.Unmarshal(object.Data, &r); err != nil {
			t.Fatal(err)
		}
		found = append(found, r)
	}
	return found
}
