package agent

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/schema"
)

// verdict is what became of a task.
type verdict struct {
	state   schema.TaskState
	reason  string
	badHost bool // the host looks broken
	// termination is what the task recorded about a failure of its own, nil if nothing.
	termination *schema.Termination
}

// ending is what a task has left about its end.
type ending struct {
	output      string              // the end of what it wrote, for people
	termination *schema.Termination // what it recorded, nil if nothing
}

// outcome is what became of a task: how its command ended, unless the agent
// had ended it before. In says what kind of task it was.
func outcome(exit exitRecord, stop *stopRecord, in intent, left ending) verdict {
	if stop != nil && !exit.EndedAt.Before(stop.At) {
		return verdict{state: stop.State, reason: stop.Reason}
	}
	switch {
	case exit.State != "":
		return verdict{state: exit.State, reason: exit.Reason}
	case exit.ExitCode != nil && *exit.ExitCode == 0:
		return verdict{state: schema.TaskSucceeded}
	}
	reason := exit.inWords()
	if line := badHostLine(left.output); in.TPU && line != "" {
		reason = fmt.Sprintf("%s, and the host looks broken: %s", reason, line)
		return verdict{state: schema.TaskWorkerFailed, reason: reason, badHost: true}
	}
	switch {
	case left.termination != nil:
		reason = terminated(left.termination, exit)
	case in.Actor && exit.ExitCode != nil:
		reason = actorEnded(exit, left.output)
	}
	return verdict{state: schema.TaskFailed, reason: reason, termination: left.termination}
}

// inWords is how a command ended, with what a kill from outside most likely means.
func (r *exitRecord) inWords() string {
	const kill = "killed by SIGKILL, as when memory runs out"
	switch {
	case r.ExitCode != nil && *r.ExitCode == exitOfSIGKILL:
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

// lastLines are the last n lines of some output.
func lastLines(output string, n int) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}
