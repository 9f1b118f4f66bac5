package outcome

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
)

// Verdict is what became of a task.
type Verdict struct {
	State   schema.TaskState
	Reason  string
	BadHost bool // the host is probably broken
	// termination is what the task recorded about a failure of its own, nil if nothing.
	Termination *schema.Termination
}

// Ending is what a task has left about its end.
type Ending struct {
	Output      string              // the end of what it wrote, for people
	Termination *schema.Termination // what it recorded, nil if nothing
}

// Of is what became of a task: how its command ended, unless the agent
// had ended it before. In is what kind of task it was.
func Of(exit hostdir.ExitRecord, stop *hostdir.StopRecord, in hostdir.Intent, left Ending) Verdict {
	if stop != nil && !exit.EndedAt.Before(stop.At) {
		return Verdict{State: stop.State, Reason: stop.Reason}
	}
	switch {
	case exit.State != "":
		return Verdict{State: exit.State, Reason: exit.Reason, Termination: exit.Termination}
	case exit.ExitCode != nil && *exit.ExitCode == 0:
		return Verdict{State: schema.TaskSucceeded}
	}
	reason := exitText(&exit)
	if line := badHostLine(left.Output); in.TPU && line != "" {
		reason = fmt.Sprintf("%s, and the host looks broken: %s", reason, line)
		return Verdict{State: schema.TaskWorkerFailed, Reason: reason, BadHost: true}
	}
	switch {
	case left.Termination != nil:
		reason = terminated(left.Termination, exit)
	case in.Actor && exit.ExitCode != nil:
		reason = actorEnded(exit, left.Output)
	}
	return Verdict{State: schema.TaskFailed, Reason: reason, Termination: left.Termination}
}

// exitText is how a command ended, with what a kill from outside most likely means.
func exitText(r *hostdir.ExitRecord) string {
	const kill = "killed by SIGKILL, as when memory runs out"
	switch {
	case r.ExitCode != nil && *r.ExitCode == ExitOfSIGKILL:
		return fmt.Sprintf("exit status %d (%s)", *r.ExitCode, kill)
	case r.ExitCode != nil:
		return fmt.Sprintf("exit status %d", *r.ExitCode)
	case r.Signal == unix.SignalName(unix.SIGKILL):
		return kill
	}
	return "killed by " + r.Signal
}

// badHostLine returns the last line that speaks of a broken TPU host rather
// than a broken program, "" if there is none. The patterns are those of libtpu.
func badHostLine(output string) string {
	found := ""
	for line := range strings.Lines(output) {
		for _, pattern := range []string{
			"Couldn't open iommu group",
			"open(/dev/vfio",
			"Failed to initialize TPU system",
			"TPU initialization failed",
			"No accelerator found",
		} {
			if strings.Contains(line, pattern) {
				found = strings.TrimSpace(line)
			}
		}
	}
	return found
}

// LacksModule reports whether the last line of what a Python program wrote is that
// a module was not found, or one of its parts. Python gives that no exit status.
func LacksModule(output, module string) bool {
	last := strings.Join(command.LastLines(output, 1), "")
	name, ok := strings.CutPrefix(strings.TrimSpace(last), "ModuleNotFoundError: No module named '")
	name, _, quoted := strings.Cut(name, "'")
	return ok && quoted && (name == module || strings.HasPrefix(name, module+"."))
}

// Unseen is what is known of an end that left no record.
type Unseen struct {
	Shim string // how the supervisor ended; "": not known
	Boot string // the machine's boot now; "": not known
}

// Unknown is the end of a task without an exit record: nothing records how its
// command ended, and it is not guessed. Missing is why there is no record. After
// a restart of the machine that is the reason.
func Unknown(missing error, proc hostdir.ProcessRecord, seen Unseen) hostdir.ExitRecord {
	record := hostdir.ExitRecord{State: schema.TaskExitUnknown, StartedAt: proc.StartedAt, Swept: true}
	ended := "ended"
	if seen.Shim != "" {
		ended += " (" + seen.Shim + ")"
	}
	switch {
	case !errors.Is(missing, os.ErrNotExist):
		record.Reason = hostdir.Clipped(fmt.Sprintf("exit status unknown: its record cannot be read: %v", missing))
	case proc.Rebooted(seen.Boot):
		record.State, record.Reason = schema.TaskWorkerFailed, "the machine restarted while the task ran"
	case proc.PID != 0:
		record.Reason = fmt.Sprintf("exit status unknown: the task's supervisor %s before it recorded one", ended)
	default:
		record.Reason = fmt.Sprintf("exit status unknown: the task's supervisor %s before it recorded that the command runs", ended)
	}
	return record
}

// StopCause is why a task is ended before its time.
type StopCause struct {
	State  schema.TaskState
	Reason string
	// Stop is for what the task is ended, "" where it ends of its own doing. Before is when
	// its host will be gone, zero: it stays.
	Stop   schema.StopReason
	Before time.Time
}

func (c *StopCause) Error() string { return c.Reason }

// Early ends a task whose command did not run.
type Early struct {
	State  schema.TaskState
	Reason string
	Output string // of what went wrong, for the task's log
	// Termination is what the host lacks, nil if that is not why.
	Termination *schema.Termination
}

func (e *Early) Error() string { return e.Reason }

// ExitOfSIGKILL is the exit status of shells and container runtimes for a command that was killed.
const ExitOfSIGKILL = 128 + 9
