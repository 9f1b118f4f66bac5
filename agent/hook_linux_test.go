package agent

import (
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/schema"
)

// wantTaskGone waits until nothing of the task runs.
func (r *rig) wantTaskGone() {
	r.t.Helper()
	path := filepath.Join(r.dir, hostdir.TaskLockFile)
	eventually(r.t, "the task's end", func() bool {
		who, err := hostdir.ReadHolder(path)
		if err != nil {
			return false
		}
		var proc hostdir.ProcessRecord
		in, err := (&hostdir.Dir{Path: r.dir}).LastIntent()
		if err != nil || in == nil || record.Read((&hostdir.Dir{Path: r.dir}).Task(in.Key).File(hostdir.ProcessFile), &proc) != nil {
			return false
		}
		return proc.Shim == who.PID && !alive(proc.PID)
	}, nothing)
}

// How a hook went is known, however full the disk was.
func TestHookOnAFullDisk(t *testing.T) {
	t.Parallel()
	onFullDisk(t, func(t *testing.T, r *rig, d *disk) {
		gen := r.up(hooked(`echo begun > begun; while [ ! -e go ]; do sleep 0.01; done; exit 5`, patience))
		r.stop(schema.StopRequest)
		r.awaitFile("begun")
		d.fill()
		r.release()
		r.wantTaskGone()
		d.free()
		if hook := r.ended(gen, schema.TaskKilled); hook.Outcome != schema.HookFailed || hook.Reason != "exit status 5" {
			t.Errorf("the hook: %+v", hook)
		}
	})
}
