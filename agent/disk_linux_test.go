package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// disk is a small file system that a test fills up.
type disk struct {
	t   *testing.T
	dir string
}

func mountDisk(t *testing.T, dir string) *disk {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m")
	if errors.Is(err, unix.EPERM) {
		t.Skip("mounting a small file system needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return &disk{t: t, dir: dir}
}

// fill leaves no space, to the last byte.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.dir, ".filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			d.t.Fatal(err)
		}
	}
}

// free gives the space back.
func (d *disk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dir, ".filler")); err != nil {
		d.t.Fatal(err)
	}
}

// awaiting is a script that goes on once r.release is called.
func awaiting(script string) schema.Job {
	return job("while [ ! -e go ]; do sleep 0.02; done; " + script)
}

func (r *rig) release() {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.work, "go"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// fullDisks is where a disk may be full: the task's host, the store, and both
// where they are one.
var fullDisks = []struct{ name, mount string }{{"host", "host"}, {"store", "store"}, {"both", ""}}

// onFullDisk runs a test for each place of a full disk.
func onFullDisk(t *testing.T, test func(t *testing.T, r *rig, d *disk)) {
	for _, place := range fullDisks {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			d := mountDisk(t, filepath.Join(root, place.mount))
			r := newRigIn(t, root)
			work := t.TempDir() // the task's own files are elsewhere
			r.stopAgent()
			r.work = work
			r.startAgent()
			test(t, r, d)
		})
	}
}

// What the command of a task ended with is known, however full the disk was, with
// the agent that started it and with one that was started meanwhile.
func TestExitStatusSurvivesAFullDisk(t *testing.T) {
	t.Parallel()
	onFullDisk(t, func(t *testing.T, r *rig, d *disk) {
		for i, end := range []struct {
			script string
			state  schema.TaskState
			code   int // -1: none
			signal string
		}{
			{"exit 0", schema.TaskSucceeded, 0, ""},
			{"exit 3", schema.TaskFailed, 3, ""},
			{"kill -9 $$", schema.TaskFailed, -1, "SIGKILL"},
		} {
			for _, restarted := range []bool{false, true} {
				spec := awaiting("echo said; " + end.script)
				gen := r.assign(&spec)
				running := r.awaitTask(gen, schema.TaskRunning)
				d.fill()
				if restarted {
					r.killAgent()
				}
				r.release()
				eventually(t, "the command to end", func() bool { return !alive(running.PID) }, nothing)
				if restarted {
					r.startAgent()
				}
				if d.dir == r.dir { // the store takes the report while the host has no space
					r.awaitTask(gen, end.state)
				}
				d.free()
				task := r.awaitTask(gen, end.state)
				code := -1
				if task.ExitCode != nil {
					code = *task.ExitCode
				}
				if code != end.code || task.Signal != end.signal || !task.Started || task.EndedAt.Before(running.StartedAt) {
					t.Errorf("end %d (agent restarted: %v) is reported as %+v", i, restarted, task)
				}
				if err := os.Remove(filepath.Join(r.work, "go")); err != nil {
					t.Fatal(err)
				}
			}
		}
		in, err := (&hostdir.Dir{Path: r.dir}).LastIntent()
		if err != nil {
			t.Fatal(err)
		}
		last := (&hostdir.Dir{Path: r.dir}).Task(in.Key)
		eventually(t, "the report to be kept", func() bool {
			kept, err := last.LastReport()
			return err == nil && kept != nil && kept.State == schema.TaskFailed
		}, nothing)
	})
}

// A task that is stopped on a full disk has ended by that, and not by its own fault.
func TestStopOnAFullDisk(t *testing.T) {
	t.Parallel()
	onFullDisk(t, func(t *testing.T, r *rig, d *disk) {
		if d.dir != r.dir {
			return // without a store there is no stop
		}
		spec := job("exec sleep 1000")
		gen := r.assign(&spec)
		running := r.awaitTask(gen, schema.TaskRunning)
		d.fill()
		r.killAgent()
		r.startAgent()
		r.awaitTask(gen, schema.TaskRunning)
		stop := r.assign(nil)
		h := r.await("the stop to be carried out", func(h state.HostReport) bool { return h.Generation == stop })
		if h.Task.State != schema.TaskKilled {
			t.Errorf("the task ended as %+v", h.Task)
		}
		r.wantGone(running.PID)
	})
}

// A task whose end could not be recorded is not started; once there is space it is.
func TestNoStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := mountDisk(t, filepath.Join(root, "host"))
	r := newRigIn(t, root)
	r.await("a report", func(state.HostReport) bool { return true })
	d.fill()
	spec := job("echo x >> starts")
	gen := r.assign(&spec)
	task := r.awaitTask(gen, schema.TaskWorkerFailed)
	if task.Started || r.starts() != 0 {
		t.Errorf("after %d starts it is %+v", r.starts(), task)
	}
	if !strings.Contains(task.Reason, "no space left on device") {
		t.Errorf("the reason is %q", task.Reason)
	}
	if left, err := os.ReadDir(filepath.Join(r.dir, hostdir.TasksDir)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	r.killAgent()
	r.startAgent()
	// Nothing is recorded of it, so the next agent tries it too, and is to see the full disk.
	r.await("the next agent to fail, too", func(h state.HostReport) bool {
		return h.PID == r.agent.Process.Pid && h.Task != nil && h.Task.Generation == gen && h.Task.State == schema.TaskWorkerFailed
	})
	d.free()
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if r.starts() != 1 {
		t.Errorf("it was started %d times", r.starts())
	}
}

// What an ended task wrote is shipped once the store takes it, by the agent that
// could not and by one that comes later.
func TestOutputIsShippedLater(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			d := mountDisk(t, filepath.Join(root, "store"))
			r := newRigIn(t, root)
			spec := awaiting("seq 1 20000; exit 0")
			gen := r.assign(&spec)
			r.awaitTask(gen, schema.TaskRunning)
			d.fill()
			r.release()
			in, err := (&hostdir.Dir{Path: r.dir}).LastIntent()
			if err != nil {
				t.Fatal(err)
			}
			dir := (&hostdir.Dir{Path: r.dir}).Task(in.Key)
			eventually(t, "the report to be kept", func() bool {
				kept, err := dir.LastReport()
				return err == nil && kept != nil
			}, nothing)
			if restarted {
				r.killAgent()
				r.startAgent()
			}
			d.free()
			r.awaitTask(gen, schema.TaskSucceeded)
			eventually(t, "the output to be shipped", func() bool { return len(r.output()) == 108894 }, func() string { return fmt.Sprint(len(r.output())) })
			eventually(t, "the output to be removed here", func() bool {
				_, err := os.Lstat(dir.File(hostdir.OutputFile))
				return errors.Is(err, os.ErrNotExist)
			}, nothing)
		})
	}
}
