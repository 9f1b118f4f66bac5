package process

import (
	"bytes"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

// List lists the living processes of this machine; zombies are left out.
func List() ([]Process, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make([]Process, 0, len(list))
	for _, p := range list {
		if p.Proc.P_stat == zombieState {
			continue
		}
		pid := int(p.Proc.P_pid)
		session, err := unix.Getsid(pid)
		if err != nil {
			continue // it ended meanwhile
		}
		all = append(all, Process{PID: pid, Parent: int(p.Eproc.Ppid), Group: int(p.Eproc.Pgid), Session: session, Started: uint64(p.Proc.P_starttime.Nano())})
	}
	return all, nil
}

// HasEnvPrefix reports whether a process was started with an environment entry that
// begins so.
func HasEnvPrefix(pid int, prefix string) bool {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return false // gone, or another user's
	}
	return bytes.Contains(args, append([]byte{0}, prefix...))
}

// InheritsOrphans is false: a shim may have descendants that are not its children's.
const InheritsOrphans = false

// BecomeReaper does nothing: there are no subreapers here, so that a process
// which leaves group and parent is found by its environment only.
func BecomeReaper() error { return nil }

// DieWithParent does nothing: the agent kills what a dead shim leaves behind.
func DieWithParent(*syscall.SysProcAttr) {}

// BootID is not known here: directory trees are read whenever they are found.
func BootID() string { return "" }
