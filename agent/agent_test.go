package agent

import (
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestRunsTaskAndReports(t *testing.T) {
	r := newRig(t)
	first := r.await("first report", func(h state.HostReport) bool { return h.CoordinatorPort > 0 })
	if first.Address != rigAddress || first.PID != r.agent.Process.Pid || first.Version != "test" || first.Task != nil {
		t.Errorf("first report is %+v", first)
	}
	spec := job(`echo one; echo two >&2; echo $FRAY_JOB_NAME $FRAY_TASK_INDEX ${FRAY_VAR_x-unset}; exit 3`)
	gen := r.assign(&spec)
	task := r.awaitTask(gen, schema.TaskFailed)
	if task.ExitCode == nil || *task.ExitCode != 3 || task.Reason != "exit status 3" || !task.Started {
		t.Errorf("task ended as %+v", task)
	}
	const want = "one\ntwo\na 0 unset\n"
	if got := r.output(); got != want {
		t.Errorf("output is %q, want %q", got, want)
	}
	if len(task.Tail) != 3 || task.Tail[2] != "a 0 unset" {
		t.Errorf("tail is %q", task.Tail)
	}
	last := r.await("new generation", func(h state.HostReport) bool { return h.Generation == gen })
	if last.Epoch != 1 || last.Seq <= first.Seq {
		t.Errorf("last report is %+v", last)
	}
}
