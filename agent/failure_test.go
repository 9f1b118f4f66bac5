package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/agent/task"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// shimPID is the process that supervises the task.
func (r *rig) shimPID() int {
	r.t.Helper()
	h, err := hostdir.ReadHolder(filepath.Join(r.dir, hostdir.TaskLockFile))
	if err != nil {
		r.t.Fatal(err)
	}
	return h.PID
}

func (r *rig) kill(pid int, sig syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		r.t.Fatalf("kill %d: %v", pid, err)
	}
}

// pidIn waits until a task has written a pid into a file of its directory.
func (r *rig) pidIn(name string) int {
	r.t.Helper()
	pid := 0
	eventually(r.t, "a pid in "+name, func() bool {
		data, err := os.ReadFile(filepath.Join(r.work, name))
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	}, nothing)
	return pid
}

// starts counts the lines that a task appends whenever it starts.
func (r *rig) starts() int {
	data, err := os.ReadFile(filepath.Join(r.work, "starts"))
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "\n")
}

func (r *rig) wantGone(pids ...int) {
	r.t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			r.t.Errorf("process %d is still alive", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// escaping is a script whose children try to outlive it: in the group, in a
// session of their own, and forked twice with signals ignored.
const escaping = `
sleep 1000 & echo $! > group
setsid sh -c 'echo $$ > session; exec sleep 1000' &
(setsid nohup sh -c 'trap "" HUP TERM; echo $$ > daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 &)
while [ ! -s daemon ] || [ ! -s session ]; do sleep 0.01; done
`

func (r *rig) escaped() []int {
	return []int{r.pidIn("group"), r.pidIn("session"), r.pidIn("daemon")}
}

// escapes starts a task that is hard to end, after some shell of the test's own. It
// returns the task's generation and the processes that are to be gone with it.
func (r *rig) escapes(shell string) (gen int64, pids []int) {
	r.t.Helper()
	spec := job(shell + escaping + "sleep 1000")
	gen = r.assign(&spec)
	task := r.awaitTask(gen, schema.TaskRunning)
	return gen, append(r.escaped(), task.PID)
}

func TestKilledTaskFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job("exec sleep 1000")
	gen := r.assign(&spec)
	task := r.awaitTask(gen, schema.TaskRunning)
	r.kill(task.PID, syscall.SIGKILL)
	task = r.awaitTask(gen, schema.TaskFailed)
	if task.Reason != "killed by SIGKILL, as when memory runs out" || task.Signal != "SIGKILL" || task.ExitCode != nil {
		t.Errorf("task ended as %+v", task)
	}
}

func TestNothingOutlivesTheCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(escaping + "exit 0")
	gen := r.assign(&spec)
	r.awaitTask(gen, schema.TaskSucceeded)
	r.wantGone(r.escaped()...)
}

func TestNothingOutlivesAStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen, pids := r.escapes("")
	stop := r.assign(nil)
	r.await("the stop to be carried out", func(h state.HostReport) bool { return h.Generation == stop })
	r.wantGone(pids...)
	r.awaitTask(gen, schema.TaskKilled)
}

func TestKilledShimLeavesTheExitStatusUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen, pids := r.escapes("")
	r.kill(r.shimPID(), syscall.SIGKILL)
	task := r.awaitTask(gen, schema.TaskExitUnknown)
	r.wantGone(pids...)
	if !task.Started || !strings.Contains(task.Reason, "supervisor") {
		t.Errorf("task ended as %+v", task)
	}
}

func TestKilledAgentIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(`echo x >> starts; echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 4`)
	gen := r.assign(&spec)
	before := r.awaitTask(gen, schema.TaskRunning)
	eventually(t, "output in the store", func() bool { return r.output() == "one\n" }, nothing)
	first, _ := r.report()
	r.killAgent()
	r.startAgent()
	next := r.await("a report of the next agent", func(h state.HostReport) bool { return h.Boot != first.Boot })
	if next.Seq <= first.Seq || next.Generation != gen || next.CoordinatorPort != first.CoordinatorPort {
		t.Errorf("next agent reports %+v after %+v", next, first)
	}
	adopted := r.awaitTask(gen, schema.TaskRunning)
	if adopted.PID != before.PID || !adopted.StartedAt.Equal(before.StartedAt) {
		t.Errorf("task was %+v, is %+v", before, adopted)
	}
	if err := os.WriteFile(filepath.Join(r.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	task := r.awaitTask(gen, schema.TaskFailed)
	if task.ExitCode == nil || *task.ExitCode != 4 {
		t.Errorf("task ended as %+v", task)
	}
	if got := r.output(); got != "one\ntwo\n" {
		t.Errorf("output is %q", got)
	}
	if n := r.starts(); n != 1 {
		t.Errorf("the task was started %d times", n)
	}
}

func TestTaskEndsWithoutAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(`echo x >> starts; while [ ! -e go ]; do sleep 0.01; done; echo done; exit 5`)
	gen := r.assign(&spec)
	task := r.awaitTask(gen, schema.TaskRunning)
	r.killAgent()
	if err := os.WriteFile(filepath.Join(r.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the task to end", func() bool { return !alive(task.PID) }, nothing)
	r.startAgent()
	task = r.awaitTask(gen, schema.TaskFailed)
	if task.ExitCode == nil || *task.ExitCode != 5 || r.output() != "done\n" {
		t.Errorf("task ended as %+v with output %q", task, r.output())
	}
	// Once more: what has ended stays ended.
	r.killAgent()
	r.startAgent()
	boot, _ := r.report()
	r.await("another agent", func(h state.HostReport) bool { return h.Boot != boot.Boot || h.PID == r.agent.Process.Pid })
	if task = r.awaitTask(gen, schema.TaskFailed); *task.ExitCode != 5 || r.starts() != 1 {
		t.Errorf("task is %+v after %d starts", task, r.starts())
	}
}

func TestKilledHostLosesItsTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen, pids := r.escapes("echo x >> starts\n")
	shim := r.shimPID()
	r.killAgent()
	before, _ := r.report()
	r.kill(shim, syscall.SIGKILL)
	eventually(t, "the shim has ended", func() bool { return !alive(shim) }, nothing)
	r.startAgent()
	// Its first word is that the task is over, never once more that it runs.
	h := r.await("a report of the new agent", func(h state.HostReport) bool { return h.Boot != before.Boot })
	if h.Task == nil || h.Task.State != schema.TaskExitUnknown {
		t.Errorf("the first report of the new agent has task %+v", h.Task)
	}
	r.awaitTask(gen, schema.TaskExitUnknown)
	r.wantGone(pids...)
	if n := r.starts(); n != 1 {
		t.Errorf("the task was started %d times", n)
	}
	// The next attempt runs.
	quick := job("exit 0")
	r.awaitTask(r.assign(&quick), schema.TaskSucceeded)
}

func TestIntentWithoutProcessIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.await("a report", func(state.HostReport) bool { return true })
	r.killAgent()
	spec := job("echo x >> starts")
	in := hostdir.Intent{Ordinal: 1, Nonce: "n-1", Job: spec.Addr, Attempt: 1, Generation: 1}
	in.Key = task.Key(&state.Assignment{Generation: 1, Run: &state.Run{Job: spec.Addr, Attempt: 1}})
	dir := filepath.Join(r.dir, hostdir.TasksDir, in.Key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := record.WriteJSON(filepath.Join(dir, hostdir.IntentFile), in); err != nil {
		t.Fatal(err)
	}
	gen := r.assign(&spec)
	r.startAgent()
	task := r.awaitTask(gen, schema.TaskExitUnknown)
	if task.Started || task.Reason == "" || r.starts() != 0 {
		t.Errorf("task is %+v after %d starts", task, r.starts())
	}
}

func TestDeafTaskIsKilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(`trap '' TERM; echo ready; while :; do sleep 0.02; done`)
	spec.StopGrace = schema.Duration(300 * time.Millisecond)
	gen := r.assign(&spec)
	r.awaitTask(gen, schema.TaskRunning)
	eventually(t, "the trap to be set", func() bool { return r.output() == "ready\n" }, nothing)
	asked := time.Now()
	r.assign(nil)
	task := r.awaitTask(gen, schema.TaskKilled)
	if took := time.Since(asked); took < 300*time.Millisecond {
		t.Errorf("it was killed after %s, before its grace was over", took)
	}
	if task.Signal != "SIGKILL" {
		t.Errorf("task ended as %+v", task)
	}
	r.wantGone(task.PID)
}

func TestTaskUsesItsGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(`trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done`)
	spec.StopGrace = schema.Duration(patience)
	gen := r.assign(&spec)
	eventually(t, "the trap to be set", func() bool { return r.output() == "ready\n" }, nothing)
	other := job("exit 0")
	next := r.assign(&other)
	r.awaitTask(next, schema.TaskSucceeded)
	data, _, err := tailLogs(t.Context(), r.store, "id-1", int(gen), 0, 0)
	if err != nil || !strings.HasSuffix(string(data), "saved\n") {
		t.Errorf("output of the ended task is %q, %v", data, err)
	}
}

func TestOlderAssignmentsAreIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.epoch, r.generation = 5, 10
	spec := job("exec sleep 1000")
	gen := r.assign(&spec)
	task := r.awaitTask(gen, schema.TaskRunning)
	for _, old := range []state.Assignment{
		{Slice: "s", Epoch: 4, Generation: 99},
		{Slice: "s", Epoch: 5, Generation: gen - 1},
	} {
		r.put(old)
		r.killAgent() // the next one must know as well
		r.startAgent()
		first := r.await("a report of the next agent", func(h state.HostReport) bool { return h.PID == r.agent.Process.Pid })
		r.await("more reports", func(h state.HostReport) bool { return h.Seq >= first.Seq+1 })
		now := r.awaitTask(gen, schema.TaskRunning)
		if now.PID != task.PID || !alive(task.PID) {
			t.Fatalf("after an older assignment the task is %+v", now)
		}
	}
	// A new leader that takes the same attempt over does not disturb it.
	r.epoch, r.generation = 6, gen-1
	a := state.Assignment{Slice: "s", Epoch: 6, Generation: gen, Run: &state.Run{
		Job: spec.Addr, Attempt: int(gen), Spec: spec, NumSlices: 1,
		Peers: []state.Peer{{Slice: "s", Address: rigAddress}},
	}}
	r.put(a)
	r.await("the new epoch", func(h state.HostReport) bool { return h.Epoch == 6 })
	if now := r.awaitTask(gen, schema.TaskRunning); now.PID != task.PID {
		t.Errorf("the task was restarted: %+v", now)
	}
}

func TestRemovedDirectoryEndsEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, pids := r.escapes("")
	pids = append(pids, r.shimPID())
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.gone:
	case <-time.After(patience):
		t.Error("the agent serves a host that is gone")
	}
	eventually(t, "all processes to end", func() bool {
		return !slices.ContainsFunc(pids, alive)
	}, func() string { return fmt.Sprint(pids) })
	if _, err := os.Stat(r.dir); err == nil {
		t.Error("the directory was made again")
	}
}

func TestTerminatedAgentEndsItsTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen, pids := r.escapes("")
	pids = append(pids, r.shimPID())
	r.stopAgent()
	r.wantGone(pids...)
	r.awaitTask(gen, schema.TaskKilled)
	if _, err := os.Stat(filepath.Join(r.dir, "dirty")); err == nil {
		t.Error("the host is still marked as dirty")
	}
}

func TestEndFlagEndsWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, pids := r.escapes("")
	shim := r.shimPID()
	r.killAgent()
	r.kill(shim, syscall.SIGKILL)
	eventually(t, "the shim has ended", func() bool { return !alive(shim) }, nothing)
	r.startAgent("--end")
	<-r.gone
	r.wantGone(pids...)
}

// Wherever in the life of a task its agent is killed: the task is started at
// most once, comes to an end that the next agent knows, and leaves nothing.
func TestAgentKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.await("a report", func(state.HostReport) bool { return true })
	for i := range 25 {
		spec := job(fmt.Sprintf("echo x >> starts; echo $$ > pid-%d; echo said; exit 7", i))
		gen := r.assign(&spec)
		time.AfterFunc(time.Duration(i*4)*time.Millisecond, func() { _ = r.agent.Process.Kill() })
		<-r.gone
		r.startAgent()
		h := r.await("the task to end", func(h state.HostReport) bool {
			return h.Task != nil && h.Task.Generation == gen && h.Task.State.Ended()
		})
		task, starts := h.Task, r.starts()
		switch {
		case task.State == schema.TaskFailed && *task.ExitCode == 7 && starts == 1 && r.output() == "said\n":
		case task.State == schema.TaskExitUnknown && starts == 0:
			t.Logf("killed after %d ms the task was lost: %s", i*4, task.Reason)
		default:
			t.Errorf("killed after %d ms: %d starts, output %q, task %+v", i*4, starts, r.output(), task)
		}
		if err := os.RemoveAll(filepath.Join(r.work, "starts")); err != nil {
			t.Fatal(err)
		}
	}
}
