package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestRunningTask(t *testing.T) {
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	running := state.Attempt{Tasks: []state.Task{{Slice: "s", State: schema.TaskRunning}, {Slice: "s", Host: 1, State: schema.TaskBuilding}}}
	ended := running
	ended.Outcome = schema.TaskPreempted
	for _, test := range []struct {
		name  string
		job   state.Job
		index int
		want  string // part of the error
	}{
		{"runs", state.Job{Status: schema.JobRunning, Attempts: []state.Attempt{ended, running}}, 1, ""},
		{"no such task", state.Job{Status: schema.JobRunning, Attempts: []state.Attempt{running}}, 2,
			"job.a has no task 2; its tasks are 0 on host 0 of slice s (running), 1 on host 1 of slice s (building)"},
		{"negative", state.Job{Status: schema.JobRunning, Attempts: []state.Attempt{running}}, -1, "no task -1"},
		{"waits", state.Job{Status: schema.JobPending}, 0, "job.a runs no attempt now; see fray status job.a"},
		{"between attempts", state.Job{Status: schema.JobRunning, Attempts: []state.Attempt{ended}}, 0, "runs no attempt now"},
		{"ended", state.Job{Status: schema.JobFailed, Attempts: []state.Attempt{ended}}, 0, "job.a has ended (failed)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := runningTask(&test.job, addr, test.index)
			if test.want == "" && (err != nil || got.slice != "s" || got.host != test.index) {
				t.Errorf("got %+v, %v", got, err)
			}
			if test.want != "" && !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("error is %v, want it to contain %q", err, test.want)
			}
		})
	}
}
