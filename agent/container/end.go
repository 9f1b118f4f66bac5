package container

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/schema"
)

// exitRuntimeFailed is an exit status of a runtime's client that is not the command's
// (docs.docker.com/reference/cli/docker/container/run/#exit-status).
const exitRuntimeFailed = 125

// PID is the first process of a container, 0 if it is not known.
func PID(ctx context.Context, c hostdir.Container) int {
	ctx, cancel := context.WithTimeout(ctx, inspectPatience)
	defer cancel()
	output, err := runtimeOutput(ctx, c.Runtime, "container", "inspect", "--format", "{{.State.Pid}}", c.Name)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(output))
	return pid
}

// inspectPatience bounds how long a runtime may take to name a process.
const inspectPatience = 2 * time.Second

// Explain adds to an end what only the runtime knows: that the container never
// ran, or that the host's memory was used up.
func Explain(c hostdir.Container, end hostdir.ExitRecord) hostdir.ExitRecord {
	if end.ExitCode == nil || end.State != "" {
		return end
	}
	output, err := runtimeOutput(context.Background(), c.Runtime, "container", "inspect", "--format", "{{json .State}}", c.Name)
	var state struct {
		OOMKilled bool
		StartedAt time.Time
	}
	if err == nil {
		err = json.Unmarshal([]byte(output), &state)
	}
	switch code := *end.ExitCode; {
	case code == exitRuntimeFailed && (err != nil || state.StartedAt.Year() <= 1):
		end.State = schema.TaskFailed
		end.Reason = fmt.Sprintf("the container did not start (exit status %d of %s); see the task's log", code, c.Runtime)
	case code == outcome.ExitOfSIGKILL && err == nil && state.OOMKilled:
		end.State = schema.TaskFailed
		end.Reason = fmt.Sprintf("exit status %d: out of memory", code)
	}
	return end
}
