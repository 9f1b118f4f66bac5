package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Process is one process of this machine. A pid is given to another process once its
// own has gone; together with Started it names one.
type Process struct {
	PID, Parent, Group, Session int
	Started                     uint64 // in units of the system
}

// HasEnv reports whether a process was started with an environment entry.
func HasEnv(pid int, entry string) bool { return HasEnvPrefix(pid, entry+"\x00") }

// Descendants returns every process below root, root itself left out.
func Descendants(all []Process, root int) []int {
	children := map[int][]int{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p.PID)
	}
	var found []int
	queue := []int{root}
	for len(queue) > 0 {
		next := children[queue[0]]
		queue = append(queue[1:], next...)
		found = append(found, next...)
	}
	return found
}

// NonceEnv marks every process of one start of a task, so that what escaped
// from its group and session is found even when its shim is gone.
const NonceEnv = "FRAY_TASK_NONCE"

// Traces are what the processes of one start of a task are found by.
type Traces struct {
	Session int    // of the shim; 0: not known
	Group   int    // of the command; 0: not known
	Nonce   string // in the environment of each
}

// Leftovers returns the living processes of a task whose shim may be gone:
// those in the session of the shim and the group of its command (a pid names
// neither anew while one member lives), those that carry the nonce, and
// whatever these started.
func Leftovers(all []Process, of Traces) []int {
	found := map[int]bool{}
	add := func(pid int) {
		if pid > 1 && !found[pid] {
			found[pid] = true
		}
	}
	for _, p := range all {
		ours := of.Group > 1 && p.Group == of.Group && p.Session == of.Session
		if !ours && !HasEnv(p.PID, NonceEnv+"="+of.Nonce) {
			continue
		}
		add(p.PID)
		for _, below := range Descendants(all, p.PID) {
			add(below)
		}
	}
	pids := make([]int, 0, len(found))
	for pid := range found {
		pids = append(pids, pid)
	}
	return pids
}

// Signal signals a process, or with a negative pid a group; one that is
// gone is no error.
func Signal(pid int, sig unix.Signal) error {
	err := unix.Kill(pid, sig)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to %d: %w", unix.SignalName(sig), pid, err)
	}
	return nil
}

// GroupAlive reports whether a process group has a member.
func GroupAlive(group int) bool {
	err := unix.Kill(-group, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
