package task

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/schema"
)

// makeTermination makes the directory in which a task may record its end.
func makeTermination(dir hostdir.TaskDir) error {
	if err := os.MkdirAll(dir.File(hostdir.TerminationDir), 0o700); err != nil {
		return fmt.Errorf("prepare the record of its end: %w", err)
	}
	return nil
}

// termination is what the task has recorded about its end, without secrets.
func (t *Task) termination() *schema.Termination {
	end, err := outcome.ReadTermination(t.dir.File(hostdir.TerminationFile))
	if err != nil {
		t.host.Log.Warn("end of task not understood", "task", t.in.Key, "error", err)
	}
	if end == nil {
		return nil
	}
	shown := func(text string, limit int) string {
		text = t.hidden().String(strings.ToValidUTF8(text, "�"))
		if len(text) > limit {
			text = strings.ToValidUTF8(text[:limit], "") + " …"
		}
		return text
	}
	return &schema.Termination{
		Cause: end.Cause, Message: shown(end.Message, hostdir.MaxReason), Type: shown(end.Type, 200), Trace: shown(end.Trace, 4*hostdir.MaxReason),
	}
}

// hookResult is how the task's hook went, as its supervisor recorded it; nil where it did not run.
func hookResult(t *Task) *schema.HookResult {
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
