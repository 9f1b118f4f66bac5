package agent

import (
	"fmt"
	"net"
	"strings"
)

// exitNotConstructed is how a program that hosts an actor ends when there is no
// actor to host: its class was not found, or its constructor failed.
const exitNotConstructed = 77

// announces reports whether a line is the one with which the Python host of an
// actor says where it serves (fray._host_serve): it explains no end.
func announces(line string) bool {
	names, address, ok := strings.Cut(line, " at ")
	_, _, err := net.SplitHostPort(address)
	return ok && err == nil && strings.HasPrefix(names, "fray: ")
}

// actorEnded says why an actor is not there, with what its program said last:
// those who wait for the actor see neither its log nor that of its constructor.
func actorEnded(exit exitRecord, output string) string {
	const unmade = "the actor could not be constructed"
	last := strings.Join(lastLines(strings.ToValidUTF8(output, "�"), 1), "")
	if _, said, ok := strings.Cut(last, unmade+": "); ok { // as fray.host has it
		last = said
	}
	if announces(last) {
		last = ""
	}
	how := exit.inWords()
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
