package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// Exit statuses of a runtime's client that are not the command's
// (docs.docker.com/reference/cli/docker/container/run/#exit-status).
const (
	exitRuntimeFailed = 125
	exitOfSIGKILL     = 128 + 9
)

// endContainer sees to it that nothing is left of the task's container, whoever
// ended its client, and returns how the task ended as the runtime knows it.
func (t *task) endContainer(record exitRecord) exitRecord {
	c := t.in.Container
	if c == nil {
		return record
	}
	if err := os.Remove(t.dir.file(envFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.agent.Log.Error("variables of a container not removed", "error", err)
	}
	record = c.explain(record)
	for {
		err := removeContainer(context.Background(), *c)
		if err == nil || t.agent.work.Err() != nil {
			return record
		}
		t.agent.Log.Error("container not ended", "task", t.in.Key, "error", err)
		t.set(func(r *state.TaskReport) { r.Reason = err.Error() })
		sleep.For(t.agent.work, time.Second)
	}
}

// explain says of an end what only the runtime knows: that the container never
// ran, or that the host's memory was used up.
func (c container) explain(record exitRecord) exitRecord {
	if record.ExitCode == nil || record.State != "" {
		return record
	}
	output, err := runtimeOutput(context.Background(), c.Runtime, "container", "inspect", "--format", "{{json .State}}", c.Name)
	var state struct {
		OOMKilled bool
		StartedAt time.Time
	}
	if err == nil {
		err = json.Unmarshal([]byte(output), &state)
	}
	switch code := *record.ExitCode; {
	case code == exitRuntimeFailed && (err != nil || state.StartedAt.Year() <= 1):
		record.State = schema.TaskFailed
		record.Reason = fmt.Sprintf("the container did not start (exit status %d of %s); see the task's log", code, c.Runtime)
	case code == exitOfSIGKILL && err == nil && state.OOMKilled:
		record.State = schema.TaskFailed
		record.Reason = fmt.Sprintf("exit status %d: out of memory", code)
	}
	return record
}
