package task

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/state"
)

// lastHealth is the task's health as an earlier agent left it: a task does not
// become unready because its agent was started again.
func (t *Task) lastHealth() state.HealthState {
	last := state.HealthStarting
	if err := record.Read(t.dir.File(hostdir.HealthFile), &last); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.host.Log.Error("health not remembered", "error", err)
	}
	return last
}

// command is a command as the task would run it: its environment, its directory.
func (t *Task) command(ctx context.Context, argv []string) (*exec.Cmd, error) {
	if c := t.in.Container; c != nil {
		return exec.CommandContext(ctx, c.Runtime, append([]string{"exec", c.Name}, argv...)...), nil
	}
	env, err := t.environment()
	if err != nil {
		return nil, err
	}
	program, err := command.Find(argv[0], t.in.WorkDir, command.Lookup(env, "PATH"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Dir, cmd.Env = t.in.WorkDir, env
	return cmd, nil
}
