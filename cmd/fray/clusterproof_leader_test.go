package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// leaderDeath is a moment of a child's life at which the leader is killed.
type leaderDeath struct {
	name  string
	serve bool // the request in the middle of which it dies happens all the same
	at    func(r *http.Request, child string) bool
	// after is what the test waits for instead, before it kills the leader.
	after func(t *testing.T, p *clusterProof, child string)
	end   bool // of the child, rather than its beginning
}

func leaderDeaths() []leaderDeath {
	return []leaderDeath{
		{name: "before a launch is saved", at: func(r *http.Request, child string) bool { return putsJob(r, store.StateKey, child) }},
		{name: "after a launch is saved, before it is answered", serve: true, at: func(r *http.Request, child string) bool { return putsJob(r, store.StateKey, child) }},
		{name: "after it was answered", after: func(t *testing.T, p *clusterProof, child string) { p.awaitNote(t, "told", "answered "+child+" ") }},
		{name: "before an assignment is written", at: func(r *http.Request, child string) bool { return putsJob(r, store.AssignPrefix, child) }},
		{name: "after an assignment is written, before that is saved", serve: true, at: func(r *http.Request, child string) bool { return putsJob(r, store.AssignPrefix, child) }},
		{name: "while a child runs", after: func(t *testing.T, p *clusterProof, child string) { p.awaitNote(t, "told", "registered "+child+" ") }},
		{name: "when a child has ended, before that is saved", end: true},
	}
}

// TestClusterLeaderKilled kills the leading watch with SIGKILL at each moment of
// a child's life. No child is lost or started twice, no task notices, and the
// parent's endpoint is the same for every controller (facts 22, 36).
func TestClusterLeaderKilled(t *testing.T) {
	t.Parallel()
	bucket := emulatorWith(t, false)
	deaths := leaderDeaths()
	p := newClusterProof(t, bucket, "", len(deaths))
	p.watch(t)
	p.watch(t)
	parent := p.pid(t, "parent", 1)
	var leader int
	for i, death := range deaths {
		child := fmt.Sprintf("child-%d", i)
		leader = p.awaitLeader(t, leader)
		p.killLeader(t, leader, child, death)
		p.watch(t)
		p.pid(t, child, 1)
	}
	p.awaitLeader(t, leader)
	if got := p.host(t, parent).Task.PID; got != parent || syscall.Kill(parent, 0) != nil {
		t.Errorf("the parent was pid %d and is reported as %d", parent, got)
	}
	ids := map[string]bool{}
	for _, found := range p.noted("told", "found ") {
		ids[found[strings.LastIndexByte(found, ' '):]] = true
	}
	if len(ids) != 1 {
		t.Errorf("after failovers lookups found the endpoints %v, want one", ids)
	}
	p.finish(t, nil)
}

func (p *clusterProof) killLeader(t *testing.T, leader int, child string, death leaderDeath) {
	t.Helper()
	t.Logf("killing pid %d %s", leader, death.name)
	if death.after != nil {
		p.allow(t, "go-"+child)
		death.after(t, p, child)
		if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	at := func(r *http.Request) bool { return death.at(r, child) }
	if death.end {
		p.allow(t, "go-"+child)
		p.awaitNote(t, "told", "registered "+child+" ")
		p.allow(t, "end-"+child)
		var ended atomic.Bool
		at = func(r *http.Request) bool {
			if isUnder(r, store.HostsPrefix) {
				if body := uploaded(r); bytes.Contains(body, []byte(child)) && bytes.Contains(body, []byte(`"succeeded"`)) {
					ended.Store(true)
				}
			}
			return ended.Load() && isPut(r, store.StateKey)
		}
	}
	sprung := p.bucket.ambush(leader, death.serve, at)
	p.allow(t, "go-"+child)
	select {
	case <-sprung:
	case <-time.After(proofPatience):
		t.Fatal("the moment did not come")
	}
	p.bucket.between.Store(nil)
}

// TestClusterLeaderSuspended stops the leader with SIGSTOP past its lease, with a
// launch on its way to it. Another one leads and launches; once resumed, the first
// one writes nothing of the stack, and says that it does not lead.
func TestClusterLeaderSuspended(t *testing.T) {
	t.Parallel()
	bucket := emulatorWith(t, false)
	p := newClusterProof(t, bucket, "", 3)
	never := func(*http.Request, bool) bool { return false }
	door := newDoor(t, bucket, never, nil)
	first := p.watch(t, "STORAGE_EMULATOR_HOST="+strings.TrimPrefix(door.URL, "http://")).Process.Pid
	if got := p.awaitLeader(t, 0); got != first {
		t.Fatalf("pid %d leads, want %d", got, first)
	}
	p.watch(t)
	parent := p.pid(t, "parent", 1)
	p.allow(t, "go-child-0")
	early := p.pid(t, "child-0", 1)
	p.awaitNote(t, "told", "registered child-0 1")
	if err := stopProcess(first); err != nil {
		t.Fatal(err)
	}
	p.allow(t, "go-child-1")
	p.awaitLeader(t, first)
	p.pid(t, "child-1", 1)
	door.awake.Store(true)
	if err := syscall.Kill(first, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := within(proofPatience, func() error {
		if said := p.noted("watch-0.log", ""); !strings.Contains(strings.Join(said, "\n"), "no longer leading") {
			return fmt.Errorf("the first watch does not say that it has lost its lease: %q", said)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	p.allow(t, "go-child-2")
	p.pid(t, "child-2", 1)
	for name, pid := range map[string]int{"parent": parent, "child-0": early} {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("%s, pid %d: %v", name, pid, err)
		}
	}
	p.finish(t, nil)
	if got := door.written(t); len(got) > 0 {
		t.Errorf("after its wake-up the first watch wrote %q", got)
	}
}
