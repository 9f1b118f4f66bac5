package ray_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/providers/ray/raytest"
	"github.com/fray-ml/fray/schema"
)

// busy has each host of a slice run a task that ignores requests to end, in a session of its own, and
// returns the processes.
func (p *place) busy(s schema.SliceSpec) []int {
	p.t.Helper()
	dir := p.t.TempDir()
	p.assign(s, 1, "trap '' TERM; setsid sh -c 'echo $$ > "+dir+"/$FRAY_TASK_INDEX.part; mv "+dir+"/$FRAY_TASK_INDEX.part "+dir+"/$FRAY_TASK_INDEX; exec sleep 100000'")
	var pids []int
	p.eventually("tasks to run", func() bool {
		pids = nil
		for n := range s.Hosts {
			data, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(n)))
			pid, parseErr := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil || parseErr != nil {
				return false
			}
			pids = append(pids, pid)
		}
		return true
	})
	return pids
}

func (p *place) awaitEnd(what string, pids []int) {
	p.t.Helper()
	p.eventually(what+" to end", func() bool { return !slices.ContainsFunc(pids, alive) })
}

// processes are those whose command line has all of some words.
func processes(t *testing.T, words ...string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
next:
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		line := strings.ReplaceAll(string(data), "\x00", " ")
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

// TestRealDeletionEndsTasks has a deletion end a task that ignores SIGTERM, in a session of its own.
func TestRealDeletionEndsTasks(t *testing.T) {
	long(t)
	p := newPlace(t, raytest.Start(t, python(t), raytest.Node{CPUs: 2}, raytest.Node{CPUs: 2}))
	provider, s := p.provider(), spec("one", 2)
	p.up(provider, s)
	tasks := p.busy(s)
	p.down(provider, s)
	for _, pid := range tasks {
		if alive(pid) {
			t.Errorf("task %d lives after its slice", pid)
		}
	}
	if left := p.left(s.Name, 2); len(left) > 0 {
		t.Errorf("it is gone but left %v", left)
	}
}

// TestRealCrashes kills what holds a slice: a node, the driver, an agent.
func TestRealCrashes(t *testing.T) {
	long(t)
	for _, test := range []struct {
		name   string
		kill   func(t *testing.T, p *place, s schema.SliceSpec)
		repair bool // in place
		cause  schema.ErrorKind
	}{
		{name: "node", cause: schema.ErrorPreempted, kill: func(_ *testing.T, p *place, _ schema.SliceSpec) {
			p.cluster.Kill(1) // of three nodes, of which two are the slice's
			p.cluster.Kill(2)
		}},
		{name: "driver", cause: schema.ErrorPreempted, kill: func(t *testing.T, _ *place, _ schema.SliceSpec) {
			for _, pid := range processes(t, "python", "-u fray_driver.py") {
				if strings.Contains(environOf(pid), "fray_one_1") {
					killProcess(t, pid)
				}
			}
		}},
		{name: "agent", repair: true, kill: func(t *testing.T, p *place, s schema.SliceSpec) {
			r, _ := p.report(s.Name, 1)
			killProcess(t, r.PID)
			p.eventually("another agent", func() bool {
				now, _ := p.report(s.Name, 1)
				return now.PID != r.PID && alive(now.PID)
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t, raytest.Start(t, python(t), raytest.Node{CPUs: 2}, raytest.Node{CPUs: 2}, raytest.Node{CPUs: 2}))
			provider, s := p.provider(), spec("one", 2)
			p.up(provider, s)
			tasks := p.busy(s)
			test.kill(t, p, s)
			if test.repair {
				if st := p.status(provider, s); st.Phase != schema.SliceReady {
					t.Errorf("it is listed as %+v", st)
				}
				return
			}
			p.eventually("the slice to be dead", func() bool { return p.status(provider, s).Phase == schema.SliceDead })
			if st := p.status(provider, s); st.Cause != test.cause || st.Reason == "" {
				t.Errorf("it is dead by %q: %s; want %q", st.Cause, st.Reason, test.cause)
			}
			p.awaitEnd("its tasks", tasks)
			p.down(provider, s)
			if test.name == "node" {
				return // one node is left
			}
			p.up(provider, s)
		})
	}
}

func environOf(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	return string(data)
}

func killProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestRealFence has a submission that is withdrawn before its driver runs start no agent: its client
// dies between the withdrawal and the stop.
func TestRealFence(t *testing.T) {
	long(t)
	p := newPlace(t, raytest.Start(t, python(t), raytest.Node{CPUs: 2}))
	provider, s := p.provider(), spec("one", 1)
	if err := provider.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if status := p.cluster.Post(t, "/api/jobs/", `{"entrypoint": "true", "submission_id": "fray_one_2", "metadata": {
		"fray-stack": "stack-a", "fray-slice": "one", "fray-attempt": "2", "fray-withdraw": "true"}}`); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if st := p.status(provider, s); st.Phase != schema.SliceDeleting {
		t.Errorf("a withdrawn slice is listed as %+v", st)
	}
	p.eventually("the withdrawn submission to end by itself", func() bool {
		_, found, err := provider.Get(t.Context(), s)
		return err == nil && !found
	})
	if _, reported := p.report(s.Name, 0); reported {
		t.Error("an agent of a withdrawn submission has reported")
	}
}
