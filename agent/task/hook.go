package task

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/container"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/agent/shim"
	"github.com/fray-ml/fray/schema"
)

// hookMargin is what a hook leaves of the time until its host is gone, for the end of the
// task and its last report.
const hookMargin = 5 * time.Second

// hookFor is the stop before which the task's hook is to run, and until when: "" where it is not to.
func (t *Task) hookFor(ctx context.Context, now time.Time) (schema.StopReason, time.Time) {
	cause, ok := errors.AsType[*outcome.StopCause](context.Cause(ctx))
	if !ok || !t.in.BeforeStop.RunsOn(cause.Stop, t.in.Task) {
		return "", time.Time{}
	}
	until := now.Add(t.in.HookTimeout())
	if last := cause.Before.Add(-hookMargin); !cause.Before.IsZero() && last.Before(until) {
		until = last
	}
	return cause.Stop, until
}

// hook is what the supervisor runs before it ends a task, nil without a hook. A program that
// is not there is found to be missing when it is to run: a task does not fail for that.
func (t preparation) hook(env []string, dir string) *shim.Hook {
	if t.run.Spec.BeforeStop == nil {
		return nil
	}
	argv := t.run.Spec.BeforeStop.Command
	if c := t.in.Container; c != nil {
		return &shim.Hook{Path: c.Runtime, Argv: container.HookArgs(*c, argv, t.in.Nonce), Env: env, Dir: dir, Nonce: t.in.Nonce}
	}
	h := &shim.Hook{Argv: argv, Env: env, Dir: dir, Nonce: t.in.Nonce}
	program, err := command.Find(argv[0], dir, command.Lookup(env, "PATH"))
	if h.Path = program; err != nil {
		h.Missing = hostdir.Clipped(err.Error())
	}
	return h
}

// hookResult is how the task's hook went, as its supervisor recorded it; nil where it did not run.
func (t *Task) hookResult() *schema.HookResult {
	if t.in.BeforeStop == nil {
		return nil
	}
	var r schema.HookResult
	if err := record.Read(t.dir.File(hostdir.HookFile), &r); err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			t.host.Log.Error("end of before_stop not read", "task", t.in.Key, "error", err)
		}
		return nil
	}
	r.Reason = t.hidden().String(strings.ToValidUTF8(r.Reason, "�"))
	return &r
}
