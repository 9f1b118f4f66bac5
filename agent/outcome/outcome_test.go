package outcome

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
)

// outcomeCase is how a task ended, and what is to be made of it.
type outcomeCase struct {
	name   string
	exit   hostdir.ExitRecord
	stop   *hostdir.StopRecord
	tpu    bool
	actor  bool
	output string
	ended  *schema.Termination
	state  schema.TaskState
	reason string

	badHost bool
}

func (c outcomeCase) check(t *testing.T) {
	want := Verdict{State: c.state, Reason: c.reason, BadHost: c.badHost}
	if c.state == schema.TaskFailed {
		want.Termination = c.ended
	}
	left := Ending{Output: c.output, Termination: c.ended}
	if got := Of(c.exit, c.stop, hostdir.Intent{TPU: c.tpu, Actor: c.actor}, left); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

var outcomeEnd = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func exitedWith(n int) hostdir.ExitRecord {
	return hostdir.ExitRecord{EndedAt: outcomeEnd, ExitCode: &n}
}

func TestOutcome(t *testing.T) {
	end, code := outcomeEnd, exitedWith
	signal := hostdir.ExitRecord{EndedAt: end, Signal: "SIGSEGV"}
	stopAt := func(at time.Time) *hostdir.StopRecord {
		return &hostdir.StopRecord{State: schema.TaskPreempted, Reason: "notice", At: at}
	}
	const iommu = "loading\nE0101 Couldn't open iommu group /dev/vfio/3\nTraceback\n"
	for _, test := range []outcomeCase{
		{name: "success", exit: code(0), state: schema.TaskSucceeded},
		{name: "success of a TPU task that complains", exit: code(0), tpu: true, output: iommu, state: schema.TaskSucceeded},
		{name: "failure", exit: code(3), state: schema.TaskFailed, reason: "exit status 3"},
		{name: "killed from outside", exit: hostdir.ExitRecord{EndedAt: end, Signal: "SIGKILL"}, state: schema.TaskFailed, reason: "killed by SIGKILL, as when memory runs out"},
		{name: "its program killed from outside", exit: code(137), state: schema.TaskFailed, reason: "exit status 137 (killed by SIGKILL, as when memory runs out)"},
		{name: "signal", exit: signal, state: schema.TaskFailed, reason: "killed by SIGSEGV"},
		{
			name: "broken TPU host", exit: code(1), tpu: true, output: iommu, state: schema.TaskWorkerFailed,
			reason:  "exit status 1, and the host looks broken: E0101 Couldn't open iommu group /dev/vfio/3",
			badHost: true,
		},
		{name: "the same words without a TPU", exit: code(1), output: iommu, state: schema.TaskFailed, reason: "exit status 1"},
		{name: "stopped", exit: signal, stop: stopAt(end.Add(-time.Second)), state: schema.TaskPreempted, reason: "notice"},
		{name: "stopped and clean", exit: code(0), stop: stopAt(end.Add(-time.Second)), state: schema.TaskPreempted, reason: "notice"},
		{name: "ended before the stop", exit: code(0), stop: stopAt(end.Add(time.Second)), state: schema.TaskSucceeded},
		{
			name: "lost", exit: hostdir.ExitRecord{EndedAt: end, State: schema.TaskWorkerFailed, Reason: "shim"},
			state: schema.TaskWorkerFailed, reason: "shim",
		},
	} {
		t.Run(test.name, test.check)
	}
}

// TestOutcomeOfPrograms: programs of fray's own record why they failed.
func TestOutcomeOfPrograms(t *testing.T) {
	code := exitedWith
	for _, test := range []outcomeCase{
		{
			name: "actor not constructed", exit: code(77), actor: true, output: "Traceback\nValueError: no weights\n\n", state: schema.TaskFailed,
			reason: "the actor could not be constructed: ValueError: no weights",
		},
		{
			name: "actor not constructed, without a word", exit: code(77), actor: true, state: schema.TaskFailed,
			reason: "the actor could not be constructed (exit status 77)",
		},
		{
			name: "actor not constructed, by its record", exit: code(77), actor: true, state: schema.TaskFailed,
			output: "a thread said something later\n",
			ended:  &schema.Termination{Cause: schema.TerminationActorUnmade, Type: "ValueError", Message: "no weights"},
			reason: "the actor could not be constructed: ValueError: no weights",
		},
		{
			name: "callable refused, by its record", exit: code(2), state: schema.TaskFailed,
			ended:  &schema.Termination{Cause: schema.TerminationCallableRefused, Message: "it was pickled by Python 3.11"},
			reason: "exit status 2: the callable cannot be run: it was pickled by Python 3.11",
		},
		{
			name: "a program that prints what the host of an actor would", exit: code(1), actor: true, state: schema.TaskFailed,
			output: "fray: the actor could not be constructed: ValueError: not really\n",
			reason: "exit status 1: fray: the actor could not be constructed: ValueError: not really",
		},
		{
			name: "a record beside success", exit: code(0), state: schema.TaskSucceeded,
			ended: &schema.Termination{Cause: schema.TerminationCallableRefused, Message: "x"},
		},
		{name: "that status of another program", exit: code(77), output: "x\n", state: schema.TaskFailed, reason: "exit status 77"},
		{name: "another status of an actor", exit: code(1), actor: true, output: "Traceback\nNo module named fray\n", state: schema.TaskFailed, reason: "exit status 1: No module named fray"},
		{
			name: "an actor that said no more than that it serves", exit: code(137), actor: true, state: schema.TaskFailed,
			output: "fray: counter, counter_0 at 127.0.0.1:41231\n",
			reason: "exit status 137 (killed by SIGKILL, as when memory runs out)",
		},
		{
			name: "an actor with last words of its own", exit: code(3), actor: true, state: schema.TaskFailed,
			output: "fray: counter at 127.0.0.1:41231\nfray: looked at nothing at all\n", reason: "exit status 3: fray: looked at nothing at all",
		},
		{name: "an actor without a word", exit: code(1), actor: true, state: schema.TaskFailed, reason: "exit status 1"},
	} {
		t.Run(test.name, test.check)
	}
}

// TestUnknownEnd: a restart of the machine alone explains a missing
// record; without it nothing is guessed.
func TestUnknownEnd(t *testing.T) {
	ran := hostdir.ProcessRecord{Shim: 7, PID: 8, Boot: "first"}
	for _, test := range []struct {
		name string
		proc hostdir.ProcessRecord
		seen Unseen
		want schema.TaskState
	}{
		{"the same boot", ran, Unseen{Boot: "first"}, schema.TaskExitUnknown},
		{"another boot", ran, Unseen{Boot: "second"}, schema.TaskWorkerFailed},
		{"no boot known now", ran, Unseen{}, schema.TaskExitUnknown},
		{"no boot recorded", hostdir.ProcessRecord{Shim: 7, PID: 8}, Unseen{Boot: "second"}, schema.TaskExitUnknown},
		{"it never ran", hostdir.ProcessRecord{}, Unseen{Boot: "second"}, schema.TaskExitUnknown},
	} {
		if got := Unknown(os.ErrNotExist, test.proc, test.seen); got.State != test.want || got.Reason == "" {
			t.Errorf("%s: got %s %q, want %s", test.name, got.State, got.Reason, test.want)
		}
	}
	if got := Unknown(errors.New("the file is damaged"), ran, Unseen{Boot: "second"}); got.State != schema.TaskExitUnknown {
		t.Errorf("a damaged record after a restart: got %s, want that it is unknown", got.State)
	}
}
