package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/filelock"
)

// markVariable is in the environment of every process of a machine and names
// its disk; processes that drop it are found below those that have it. It has
// no prefix of fray's: agents keep those from their tasks.
const markVariable = "EMULATED_MACHINE"

// diskMark is the value of markVariable. That of a directory of machines is the
// beginning of theirs.
func diskMark(dir string) string { return dir + "/" }

// process is what must be known of one to find a machine's.
type process struct {
	pid, parent, session int
	marked               bool
}

// members are the processes of a machine: those that carry its mark, whatever
// is in their sessions, and what all these started.
func members(all []process) []int {
	found := map[int]bool{}
	sessions := map[int]bool{}
	for _, p := range all {
		if p.marked {
			found[p.pid], sessions[p.session] = true, true
		}
	}
	delete(sessions, os.Getpid())
	self, _ := unix.Getsid(0)
	delete(sessions, self)
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !found[p.pid] && (found[p.parent] || sessions[p.session]) {
				found[p.pid], grown = true, true
			}
		}
	}
	delete(found, os.Getpid())
	pids := make([]int, 0, len(found))
	for pid := range found {
		pids = append(pids, pid)
	}
	return pids
}

// sweepPatience bounds how long killed processes may take to vanish.
const sweepPatience = 20 * time.Second

// sweep kills every process of a machine, and returns once there is none. They
// are stopped first, so that none starts another while the others die.
func sweep(mark string) error {
	deadline := time.Now().Add(sweepPatience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := processes(mark)
		if err != nil {
			return fmt.Errorf("end processes: %w", err)
		}
		left := members(all)
		if len(left) == 0 {
			return nil
		}
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, pid := range left {
				if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("end processes: send %s to %d: %w", unix.SignalName(sig), pid, err)
				}
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end processes: %v do not die", left)
		}
		<-tick.C
	}
}

// lockDir takes a directory for this process alone, until the file is closed.
func lockDir(dir string) (*os.File, error) {
	f, err := filelock.Take(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("%s is another emulator's: %w", dir, err)
	}
	return f, nil
}
