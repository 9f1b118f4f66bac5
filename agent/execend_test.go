package agent

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// lingering is a script that leaves processes in its group, its session and
// outside of both, of which none minds a hangup. It prints their pids.
const lingering = `trap '' HUP TERM; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo $$; while :; do sleep 1000; done`

// pidsOf are the numbers that a command printed.
func pidsOf(t *testing.T, out string) []int {
	t.Helper()
	var pids []int
	for word := range strings.FieldsSeq(out) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("%q is no list of pids", out)
		}
		pids = append(pids, pid)
	}
	return pids
}

// lingers executes a command, and is told of the processes that it leaves.
func (r *rig) lingers(ctx context.Context, tty bool) (execClient, []int) {
	r.t.Helper()
	start := sh(lingering)
	start.Tty = tty
	stream, err := begin(ctx, r.hostClient(minted(r.t, userClaims())), start)
	if err != nil {
		r.t.Fatal(err)
	}
	got, err := hear(stream, func(s said) bool { return strings.Count(s.stdout, "\n") == 3 })
	if err != nil {
		r.t.Fatal(err)
	}
	return stream, pidsOf(r.t, got.stdout)
}

// awaitEnd waits until processes are gone.
func awaitEnd(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, "process "+strconv.Itoa(pid)+" to end", func() bool { return !alive(pid) }, nothing)
	}
}

func TestExecEndsWithItsCall(t *testing.T) {
	t.Parallel()
	for _, tty := range []bool{false, true} {
		t.Run("tty "+strconv.FormatBool(tty), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			task := r.runs(job("exec sleep 1000"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, pids := r.lingers(ctx, tty)
			cancel()
			awaitEnd(t, pids)
			marks := filepath.Join(r.dir, hostdir.ExecsDir)
			eventually(t, "no record of the command to be left", func() bool {
				left, err := os.ReadDir(marks)
				return err == nil && len(left) == 0
			}, nothing)
			if !alive(task.PID) {
				t.Error("the task has ended as well")
			}
		})
	}
}

// A command gets a hangup before it is ended.
func TestExecHangsUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.killAgent()
	r.nohup = true // who applies may have logged out
	r.startAgent()
	r.runs(job("exec sleep 1000"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := begin(ctx, r.hostClient(minted(t, userClaims())), sh(`trap 'echo bye > hup; exit' HUP; echo ready; while :; do sleep 0.02; done`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := hear(stream, func(s said) bool { return s.stdout == "ready\n" }); err != nil {
		t.Fatalf("it says %+v, %v", got, err)
	}
	cancel()
	eventually(t, "the command to hear of it", func() bool {
		data, err := os.ReadFile(filepath.Join(r.work, "hup"))
		return err == nil && string(data) == "bye\n"
	}, nothing)
}

func TestExecEndsWithItsTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("exec sleep 1000"))
	stream, pids := r.lingers(t.Context(), false)
	r.assign(nil)
	if _, err := stream.Recv(); status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "task 0 of job.a has ended") {
		t.Errorf("the call says %v, want that the task has ended", err)
	}
	awaitEnd(t, pids)
}

// An agent that is killed takes its commands along, and the next one those that
// were not its children.
func TestExecEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	task := r.runs(job("exec sleep 1000"))
	_, pids := r.lingers(t.Context(), false)
	first, _ := r.report()
	r.killAgent()
	r.startAgent()
	awaitEnd(t, pids)
	r.await("the next agent", func(h state.HostReport) bool { return h.Boot != first.Boot && h.API != "" })
	if !alive(task.PID) {
		t.Fatal("the task has ended as well")
	}
	// It runs commands beside the task that it took over.
	r.await("the task", func(h state.HostReport) bool { return h.Task != nil && h.Task.State == schema.TaskRunning })
	again, err := execute(t.Context(), r.hostClient(minted(t, userClaims())), sh("echo $FRAY_JOB_ID"), "")
	if err != nil || again.stdout != "id-1\n" {
		t.Errorf("beside a task taken over, exec says %+v, %v", again, err)
	}
}
