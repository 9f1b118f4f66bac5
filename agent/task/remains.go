package task

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// remains are what is left to do for a task that has ended: its report is kept on
// this host, and its output goes to the store. On a full disk, or where the store
// takes nothing, that is tried again until it is done.
type remains struct {
	task    *Task
	report  *state.TaskReport // nil once it is kept
	shipped bool
}

// Times between tries.
const (
	firstSettle = time.Second
	lastSettle  = 30 * time.Second
)

// settle tries once, and reports whether nothing is left to do. Output that the
// store has makes room for the report.
func (r *remains) settle() bool {
	dir, log := r.task.dir, r.task.host.Log
	var err error
	if r.report != nil {
		err = record.WriteJSON(dir.File(hostdir.ReportFile), r.report)
		if errors.Is(err, unix.ENOSPC) && r.shipped && os.RemoveAll(dir.File(hostdir.OutputFile)) == nil {
			err = record.WriteJSON(dir.File(hostdir.ReportFile), r.report)
		}
	}
	if err != nil {
		log.Error("task report not kept", "task", r.task.in.Key, "error", err)
		return false
	}
	r.report = nil
	if !r.shipped {
		return false
	}
	// The store has the output, and the report all that is in the records.
	for _, name := range []string{hostdir.OutputFile, hostdir.ExitFile, hostdir.StopFile, hostdir.HookFile, hostdir.HealthFile} {
		err = errors.Join(err, os.RemoveAll(dir.File(name)))
	}
	if err != nil {
		log.Error("files of an ended task not removed", "task", r.task.in.Key, "error", err)
	}
	return true
}

// settleLater tries until nothing is left to do or ctx ends; a later agent goes on.
func (r *remains) settleLater(ctx context.Context) {
	for wait := firstSettle; sleep.For(ctx, wait); wait = min(2*wait, lastSettle) {
		if !r.shipped {
			s := r.task.shipper()
			err := s.Resume(ctx)
			if err == nil {
				err = s.Finish(ctx)
			}
			r.shipped = err == nil
		}
		if r.settle() {
			return
		}
	}
}
