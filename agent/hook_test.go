package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// hooked is a job whose program ends at SIGTERM, with a hook.
func hooked(hook string, timeout time.Duration, on ...schema.StopReason) schema.Job {
	spec := job(`trap 'echo main; exit 0' TERM; echo up; while :; do sleep 0.02; done`)
	spec.StopGrace = schema.Duration(patience)
	spec.BeforeStop = &schema.BeforeStop{
		Command: []string{"/bin/sh", "-c", hook}, Timeout: schema.Duration(timeout), On: on, Tasks: schema.HookOnAll,
	}
	return spec
}

// up starts a job and waits until its program has set its trap.
func (r *rig) up(spec schema.Job) int64 {
	r.t.Helper()
	gen := r.assign(&spec)
	eventually(r.t, "the trap to be set", func() bool { return strings.HasPrefix(r.output(), "up\n") }, r.output)
	return gen
}

// stop stops what runs.
func (r *rig) stop(why schema.StopReason) {
	r.t.Helper()
	r.put(state.Assignment{Slice: "s", Epoch: r.epoch, Generation: r.generation + 1, Stop: why, Why: "told to"})
}

// ended waits for the end of a task and its hook.
func (r *rig) ended(gen int64, want schema.TaskState) *schema.HookResult {
	r.t.Helper()
	task := r.awaitTask(gen, want)
	if task.Hook == nil {
		r.t.Fatalf("nothing of a hook is reported: %+v\n%s", task, r.output())
	}
	return task.Hook
}

// read is a file of the task's directory, which its processes write.
func (r *rig) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(r.work, name))
	return string(data)
}

func (r *rig) awaitFile(name string) string {
	r.t.Helper()
	eventually(r.t, name, func() bool { return strings.HasSuffix(r.read(name), "\n") }, r.output)
	return strings.TrimSpace(r.read(name))
}

func (r *rig) wantDead(name string) {
	r.t.Helper()
	pid, err := strconv.Atoi(r.awaitFile(name))
	if err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "process "+strconv.Itoa(pid)+" to be dead", func() bool { return !alive(pid) }, nothing)
}

func TestHookRunsBeforeSIGTERM(t *testing.T) {
	t.Parallel()
	for _, why := range schema.StopReasons() {
		t.Run(string(why), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			spec := hooked(`echo "$FRAY_STOP_REASON of attempt $FRAY_ATTEMPT, task $FRAY_TASK_INDEX"; echo "$FRAY_STOP_DEADLINE $FRAY_STOP_REMAINING $(date +%s)" > times`, 40*time.Second)
			gen := r.up(spec)
			want := schema.TaskKilled
			if why == schema.StopPreemption {
				want = schema.TaskPreempted
				if err := os.WriteFile(filepath.Join(r.dir, hostdir.PreemptedFile), []byte("taken away\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				r.stop(why)
			}
			hook := r.ended(gen, want)
			if hook.Outcome != schema.HookSucceeded || hook.Stop != why || hook.Reason != "" || hook.EndedAt.Before(hook.StartedAt) {
				t.Errorf("the hook: %+v", hook)
			}
			bound, low := 40.0, 30.0
			if why == schema.StopPreemption { // what its machine has left, with a margin
				bound, low = 25, 10
			}
			var deadline, now int64
			var remaining float64
			if _, err := fmt.Sscan(r.read("times"), &deadline, &remaining, &now); err != nil {
				t.Fatal(err)
			}
			if remaining > bound || remaining < low || deadline > now+int64(bound)+1 || deadline < now {
				t.Errorf("%v s remain until %d, at %d", remaining, deadline, now)
			}
			lines := strings.Split(strings.TrimSpace(r.output()), "\n")
			text := strings.Join(lines, "|")
			for _, part := range []string{"up|fray: before_stop begins (" + string(why) + "), for ", "|" + string(why) + " of attempt 1, task 0|", "|fray: before_stop succeeded after ", "|main"} {
				i := strings.Index(text, part)
				if i < 0 {
					t.Fatalf("the log lacks %q in order: %s", part, r.output())
				}
				text = text[i+len(part)-1:]
			}
		})
	}
}

// The hook runs before the stops that it names and no others, nor where the task ends by
// itself or by its own fault.
func TestHookOfOtherStops(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := hooked(`echo hook`, time.Minute, schema.StopPreemption)
	gen := r.up(spec)
	r.stop(schema.StopRestart)
	if task := r.awaitTask(gen, schema.TaskKilled); task.Hook != nil || strings.Contains(r.output(), "hook") {
		t.Errorf("it ran: %+v, %s", task.Hook, r.output())
	}
	r.generation++
	slow := hooked(`echo hook`, time.Minute)
	slow.Timeout = schema.Duration(100 * time.Millisecond)
	gen = r.assign(&slow)
	if task := r.awaitTask(gen, schema.TaskFailed); task.Hook != nil {
		t.Errorf("it ran before a timeout: %+v", task.Hook)
	}
	ends := hooked(`echo hook`, time.Minute)
	ends.Command[2] = schema.Plain("exit 0")
	gen = r.assign(&ends)
	if task := r.awaitTask(gen, schema.TaskSucceeded); task.Hook != nil {
		t.Errorf("it ran of a task that ended by itself: %+v", task.Hook)
	}
}

// A hook is ended at its bound with all that it started, wherever that went, and the task gets
// its SIGTERM and its grace after that.
func TestHookThatHangsAndForks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen := r.up(hooked(`trap '' TERM; setsid sh -c 'echo $$ > forked; exec sleep 3600' & echo $$ > hook; sleep 3600; sleep 3600`, 2*time.Second))
	r.stop(schema.StopRequest)
	hook := r.ended(gen, schema.TaskKilled)
	if hook.Outcome != schema.HookTimedOut || !strings.HasPrefix(hook.Reason, "ended after 2s") {
		t.Errorf("the hook: %+v", hook)
	}
	r.wantDead("hook")
	r.wantDead("forked")
	if got := r.output(); !strings.HasSuffix(got, "main\n") || !strings.Contains(got, "\nfray: before_stop was ended after ") {
		t.Errorf("output %q", got)
	}
}

// What a hook leaves running ends with it.
func TestHookLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := hooked(`setsid sh -c 'echo $$ > forked; exec sleep 3600' & while [ ! -s forked ]; do sleep 0.01; done; exit 7`, patience)
	// The program outlives its SIGTERM until the hook's child is seen to be dead.
	spec.Command[2] = schema.Plain(`trap 'while kill -0 $(cat forked) 2>/dev/null; do sleep 0.01; done; echo gone; exit 0' TERM; echo up; while :; do sleep 0.02; done`)
	gen := r.up(spec)
	r.stop(schema.StopDestroy)
	hook := r.ended(gen, schema.TaskKilled)
	if hook.Outcome != schema.HookFailed || hook.Reason != "exit status 7" {
		t.Errorf("the hook: %+v", hook)
	}
	if got := r.output(); !strings.Contains(got, "before_stop failed after") || !strings.HasSuffix(got, "gone\n") {
		t.Errorf("output %q", got)
	}
}

func TestHookWithoutItsProgram(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := hooked("", time.Minute)
	spec.BeforeStop.Command = []string{"no-such-program"}
	gen := r.up(spec)
	r.stop(schema.StopRequest)
	hook := r.ended(gen, schema.TaskKilled)
	if hook.Outcome != schema.HookNotStarted || !strings.Contains(hook.Reason, "no-such-program") {
		t.Errorf("the hook: %+v", hook)
	}
	if got := r.output(); !strings.HasSuffix(got, "main\n") {
		t.Errorf("output %q", got)
	}
}

// The agent dies while the hook runs: the hook goes on, runs once, and the next agent reports it.
func TestHookOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	for _, restarts := range []int{1, 3} {
		t.Run(strconv.Itoa(restarts), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			gen := r.up(hooked(`echo begins >> hooks; while [ ! -e go ]; do sleep 0.01; done; echo ends >> hooks`, patience))
			r.stop(schema.StopRestart)
			r.awaitFile("hooks")
			for range restarts {
				before, _ := r.report()
				r.killAgent()
				r.startAgent()
				r.await("a report of the next agent", func(h state.HostReport) bool { return h.Boot != before.Boot })
			}
			if err := os.WriteFile(filepath.Join(r.work, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			hook := r.ended(gen, schema.TaskKilled)
			if hook.Outcome != schema.HookSucceeded || r.read("hooks") != "begins\nends\n" {
				t.Errorf("the hook: %+v, %q", hook, r.read("hooks"))
			}
			if got := r.output(); !strings.HasSuffix(got, "main\n") {
				t.Errorf("output %q", got)
			}
		})
	}
}

// A program that ends while its hook runs leaves it the time that it has, and the stop is a stop.
func TestProgramEndsDuringItsHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := hooked(`touch stop; while [ ! -e ended ]; do sleep 0.01; done; echo hook after it`, patience)
	spec.Command[2] = schema.Plain(`trap 'touch ended' EXIT; echo up; while [ ! -e stop ]; do sleep 0.01; done`)
	gen := r.up(spec)
	r.stop(schema.StopRequest)
	if hook := r.ended(gen, schema.TaskKilled); hook.Outcome != schema.HookSucceeded {
		t.Errorf("the hook: %+v", hook)
	}
	if got := r.output(); !strings.Contains(got, "hook after it\nfray: before_stop succeeded") {
		t.Errorf("output %q", got)
	}
}

// The supervisor is killed while the hook runs: nothing of either is left, and the hook is not
// run again.
func TestKilledSupervisorEndsItsHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen := r.up(hooked(`echo $$ > hook; echo x >> hooks; sleep 3600`, patience))
	r.stop(schema.StopRequest)
	r.awaitFile("hook")
	who, err := hostdir.ReadHolder(filepath.Join(r.dir, hostdir.TaskLockFile))
	if err != nil {
		t.Fatal(err)
	}
	shim, err := os.FindProcess(who.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := shim.Kill(); err != nil {
		t.Fatal(err)
	}
	hook := r.ended(gen, schema.TaskKilled)
	if hook.Outcome != schema.HookUnknown {
		t.Errorf("the hook: %+v", hook)
	}
	r.wantDead("hook")
	if got := r.read("hooks"); got != "x\n" {
		t.Errorf("it ran as %q", got)
	}
}

func TestHookInAContainer(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		spec := r.job(`trap 'echo main; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
		spec.StopGrace = schema.Duration(patience)
		spec.BeforeStop = &schema.BeforeStop{
			Command: []string{"/bin/sh", "-c", `echo "hook $FRAY_STOP_REASON $FRAY_ATTEMPT"`}, Timeout: schema.Duration(patience), Tasks: schema.HookOnAll,
		}
		gen := r.runsUp(spec)
		r.stop(schema.StopRequest)
		hook := r.ended(gen, schema.TaskKilled)
		if hook.Outcome != schema.HookSucceeded {
			t.Errorf("the hook: %+v\n%s", hook, r.output())
		}
		if got := r.output(); !strings.Contains(got, "hook stop 1\n") || !strings.Contains(got, "main\n") {
			t.Errorf("output %q", got)
		}
		r.wantNoContainer()
	})
}
