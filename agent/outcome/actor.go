package outcome

import (
	"fmt"
	"net"
	"strings"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
)

// exitNotConstructed is how a program that hosts an actor ends when there is no
// actor to host: its class was not found, or its constructor failed.
const exitNotConstructed = 77

// announces reports whether a line is the one with which the Python host of an
// actor writes where it serves (fray._host_serve): it explains no end.
func announces(line string) bool {
	names, address, ok := strings.Cut(line, " at ")
	_, _, err := net.SplitHostPort(address)
	return ok && err == nil && strings.HasPrefix(names, "fray: ")
}

// unmade is how a reason begins of an actor that could not be constructed.
const unmade = "the actor could not be constructed"

// terminated is why a program of fray's own failed, as it recorded it.
func terminated(end *schema.Termination, exit hostdir.ExitRecord) string {
	switch end.Cause {
	case schema.TerminationActorInvalid:
		return end.String()
	case schema.TerminationActorUnmade:
		return unmade + ": " + end.String()
	case schema.TerminationCallableRefused, schema.TerminationCallableInvalid:
		return fmt.Sprintf("%s: the callable cannot be run: %s", exitText(&exit), end)
	case schema.TerminationProgramMissing, schema.TerminationPackageMissing, schema.TerminationFinal:
		return fmt.Sprintf("%s: %s", exitText(&exit), end)
	}
	return exitText(&exit)
}

// actorEnded is why an actor is not there, of a program that recorded nothing: how
// it ended, and beside that the last line that it wrote, since clients that wait for
// the actor see no log.
func actorEnded(exit hostdir.ExitRecord, output string) string {
	last := strings.Join(command.LastLines(strings.ToValidUTF8(output, "�"), 1), "")
	if announces(last) {
		last = ""
	}
	how := exitText(&exit)
	unconstructed := *exit.ExitCode == exitNotConstructed
	switch {
	case unconstructed && last == "":
		return fmt.Sprintf("%s (%s)", unmade, how)
	case unconstructed:
		return unmade + ": " + last
	case last == "":
		return how
	}
	return how + ": " + last
}
