package agent

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/agent/task"
	"github.com/fray-ml/fray/agent/uv"
	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// start begins the task of an assignment, unless this host began it before or
// must not run it.
func (a *agent) start(want *state.Assignment) {
	index := -1
	for i, peer := range want.Run.Peers {
		if peer.Slice == a.Slice && peer.Host == a.Host {
			index = i
		}
	}
	if index < 0 {
		return // this host has no part in the attempt
	}
	report := state.TaskReport{
		Job: want.Run.Job, Attempt: want.Run.Attempt, Generation: want.Generation, Task: index,
		State: schema.TaskPending,
	}
	at := hostdir.Mark{Epoch: want.Epoch, Generation: want.Generation}
	if a.rejected == at {
		return // that was its end; it does not start after all
	}
	if state, reason := a.rejection(want.Run.Peers[index]); reason != "" {
		a.rejected = at
		report.State, report.Reason = state, reason
		a.report.Task = &report
		a.publish()
		return
	}
	in := hostdir.Intent{
		Key: task.Key(want), Ordinal: 1, Nonce: rand.Text(), Job: want.Run.Job, JobID: want.Run.JobID,
		Attempt: want.Run.Attempt, Generation: want.Generation, Task: index,
		Grace: want.Run.Spec.StopGrace, Timeout: want.Run.Spec.Timeout, TPU: want.Run.Accelerator != "",
		Health: want.Run.Spec.HealthCheck != nil, Actor: want.Run.Spec.HostsActor(),
	}
	if hook := want.Run.Spec.BeforeStop; hook != nil {
		in.BeforeStop = &schema.BeforeStop{Timeout: hook.Timeout, On: hook.On, Tasks: hook.Tasks}
	}
	if a.task != nil {
		in.Ordinal = a.task.Ordinal() + 1
	}
	dir := a.dir.Task(in.Key)
	if _, err := os.Stat(dir.File(hostdir.IntentFile)); err == nil {
		if last, err := dir.LastReport(); err == nil && last != nil {
			a.report.Task = last
			a.publish()
		}
		return
	}
	t := task.New(a.tasks, in, want.Run, report)
	a.begin(t)
	t.Start()
}

// rejection is why a host must not run a task as this peer, and how the task
// ends by that; "" if it may run.
func (a *agent) rejection(self state.Peer) (schema.TaskState, string) {
	switch {
	case self.Address != a.Address:
		return schema.TaskUnschedulable, fmt.Sprintf("the assignment has address %s for this host, which is %s", self.Address, a.Address)
	case a.report.Notice != "":
		return schema.TaskPreempted, "this host takes no more tasks: " + a.report.Notice
	}
	return "", ""
}

// begin makes t the agent's task, which is started then.
func (a *agent) begin(t *task.Task) {
	a.task, a.ended = t, false
	a.machine.api.Live.Set(a.Slice, t)
	report := t.Report()
	a.report.Task = &report
	a.publish()
}

// adopt takes over what an earlier agent of this host left.
func (a *agent) adopt() error {
	var build hostdir.BuildRecord
	if err := record.ReadJSON(a.dir.File(hostdir.BuildFile), &build); err == nil {
		if err := uv.EndBuild(a.dir, build); err != nil {
			return err
		}
	}
	in, err := a.dir.LastIntent()
	if err != nil || in == nil {
		return err
	}
	t := task.Resume(a.tasks, *in)
	last, err := a.dir.Task(in.Key).LastReport()
	if err != nil {
		return err
	}
	if last != nil {
		a.task, a.ended = t, true
		a.report.Task = last
		t.ShipRest()
		return nil
	}
	a.awaitMovedTask()
	a.settling = !t.Recall()
	a.begin(t)
	t.TakeOver()
	return nil
}

// movedTaskPatience bounds the wait for a task that ends because its host's
// directory was renamed; its supervisor checks that twice a second.
const movedTaskPatience = 30 * time.Second

// awaitMovedTask waits until a task that was started before the host's directory was
// renamed has ended: it must not be reported as running a moment before its end.
func (a *agent) awaitMovedTask() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	path := a.dir.File(hostdir.TaskLockFile)
	for deadline := time.Now().Add(movedTaskPatience); time.Now().Before(deadline); {
		if held, err := filelock.IsHeld(path); err != nil || !held {
			return
		}
		if who, err := hostdir.ReadHolder(path); err != nil || !who.ServesElsewhere(a.dir) {
			return
		}
		select {
		case <-a.work.Done():
			return
		case <-tick.C:
		}
	}
}

// stopReason is why what runs is stopped for what is wanted now.
func stopReason(want *state.Assignment) string {
	switch {
	case want.Why != "":
		return want.Why
	case want.Run != nil:
		return fmt.Sprintf("stopped for attempt %d of %s", want.Run.Attempt, want.Run.Job)
	}
	return "stopped by the controller"
}

// stopOf is for what a task is stopped by what is wanted now.
func stopOf(want *state.Assignment) schema.StopReason {
	switch {
	case want.Stop != "":
		return want.Stop
	case want.Run != nil:
		return schema.StopRestart
	}
	return schema.StopRequest
}
