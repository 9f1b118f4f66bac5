package hosts

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/filelock"
)

// markVariable is in the environment of every process of a machine and names
// its disk; processes that drop it are found below those that have it. It has
// no prefix of fray's: agents keep those from their tasks.
const markVariable = "EMULATED_MACHINE"

// diskMark is the value of markVariable. That of a directory of machines is the
// beginning of theirs.
func diskMark(dir string) string { return dir + "/" }

// members are the processes of a machine, or of all machines of a directory: those that
// carry its mark, all in their sessions, and the descendants of these.
func members(all []process.Process, mark string) []int {
	found := map[int]bool{}
	sessions := map[int]bool{}
	for _, p := range all {
		if process.HasEnvPrefix(p.PID, markVariable+"="+mark) {
			found[p.PID], sessions[p.Session] = true, true
		}
	}
	self, _ := unix.Getsid(0)
	delete(sessions, self)
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !found[p.PID] && (found[p.Parent] || sessions[p.Session]) {
				found[p.PID], grown = true, true
			}
		}
	}
	delete(found, os.Getpid())
	return slices.Collect(maps.Keys(found))
}

// powerOff kills every process of a machine, and returns once there is none.
func powerOff(mark string) error {
	return process.SweepAll(func(all []process.Process) []int { return members(all, mark) })
}

// lockDir takes a directory for this process alone, until the file is closed.
func lockDir(dir string) (*os.File, error) {
	f, err := filelock.Take(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("%s is another emulator's: %w", dir, err)
	}
	return f, nil
}
