package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// rashConfig is a job that is tried again, and launches the same each time.
const rashConfig = `
reservation "pool" {
  min {
    cpu    = 1
    slices = 2
  }
}
job "parent" {
  command = [%q, "` + clusterTaskWord + `", "rash", %q, "parent"]
  retries {
    failure = 2
  }
}
`

// TestClusterParentKilled kills a job that launches others with SIGKILL: in the
// middle of a launch, when it is saved and not answered, and between launches.
// What it launched ends with the attempt unless it is detached, and its next
// attempt, which makes the same requests, launches nothing twice (facts 4, 5).
func TestClusterParentKilled(t *testing.T) {
	t.Parallel()
	bucket := emulatorWith(t, false)
	p := &clusterProof{proofStack: newProofStack(t, bucket), notes: t.TempDir(), children: 2}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, fmt.Sprintf(rashConfig, self, p.notes))
	t.Cleanup(func() { p.explain(t) })
	p.must(t, "apply", "--auto-approve")
	p.watch(t)
	p.awaitLeader(t, 0)

	// While it launches the detached one.
	bucket.killAt(p.pid(t, "parent", 1), func(r *http.Request) bool { return putsJob(r, store.StateKey, "child-0") })
	p.allow(t, "go-child-0")
	p.awaitNote(t, "starts", "parent 2 ")
	if answered := p.noted("told", "answered child-0"); len(answered) > 1 {
		t.Errorf("the first attempt was answered %q before it was killed: the proof proves nothing", answered)
	}
	detached := p.pid(t, "child-0", 1)
	p.awaitNote(t, "told", "registered child-0 1")

	// Between two launches, with one that is bound to it.
	p.allow(t, "go-child-1")
	bound := p.pid(t, "child-1", 1)
	p.awaitNote(t, "told", "registered child-1 1")
	p.awaitNote(t, "told", "answered child-1 ")
	p.kill(t, p.pid(t, "parent", 2))
	p.awaitNote(t, "starts", "parent 3 ")
	if err := within(proofPatience, func() error {
		if syscall.Kill(bound, 0) == nil && letter(bound) != 'Z' {
			return fmt.Errorf("child-1, pid %d, outlives the attempt that launched it", bound)
		}
		if n := len(p.noted("told", "answered child-1 ")); n != 2 {
			return fmt.Errorf("child-1 was answered %d times, want 2", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(detached, 0); err != nil || letter(detached) == 'Z' {
		t.Errorf("child-0, pid %d, is detached, and ended with its parent: %v", detached, err)
	}

	p.allow(t, "end-child-0")
	p.allow(t, "over")
	p.awaitEnds(t, map[string]schema.JobStatus{"parent": schema.JobSucceeded, "child-0": schema.JobSucceeded, "child-1": schema.JobStopped})
	p.checkStarts(t, map[string]int{"parent": 3})
	for _, name := range []string{"child-0", "child-1"} {
		answers := p.noted("told", "answered "+name+" ")
		if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
			t.Errorf("the same request launched %q", answers)
		}
	}
}

// awaitEnds waits until exactly these jobs are on record, and ended so.
func (p *clusterProof) awaitEnds(t *testing.T, want map[string]schema.JobStatus) {
	t.Helper()
	if err := within(proofPatience, func() error {
		got := map[string]schema.JobStatus{}
		for addr, j := range p.document(t).Jobs {
			name := addr.Name
			if j.Launch != nil {
				name = j.Launch.Name
			}
			if _, twice := got[name]; twice {
				return fmt.Errorf("%s is on record twice", name)
			}
			got[name] = j.Status
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("the jobs have ended as %v, want %v", got, want)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// killAt kills a process at the first request that is right, which is served.
func (e *emulator) killAt(pid int, right func(r *http.Request) bool) {
	var once sync.Once
	between := func(_ http.ResponseWriter, r *http.Request) bool {
		if right(r) {
			once.Do(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // shown by the next attempt
		}
		return false
	}
	e.between.Store(&between)
}
