package agent

import (
	"bytes"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

// processes lists the living processes of this machine; zombies are left out.
func processes() ([]process, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make([]process, 0, len(list))
	for _, p := range list {
		if p.Proc.P_stat == zombieState {
			continue
		}
		pid := int(p.Proc.P_pid)
		session, err := unix.Getsid(pid)
		if err != nil {
			continue // it ended meanwhile
		}
		all = append(all, process{pid: pid, parent: int(p.Eproc.Ppid), group: int(p.Eproc.Pgid), session: session})
	}
	return all, nil
}

// hasEnv reports whether a process was started with an environment entry.
func hasEnv(pid int, entry string) bool {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return false // gone, or somebody else's
	}
	return bytes.Contains(args, append(append([]byte{0}, entry...), 0))
}

// inheritsOrphans says that a shim may have descendants that are not its children's.
const inheritsOrphans = false

// becomeReaper does nothing: there are no subreapers here, so that a process
// which leaves group and parent is found by its environment only.
func becomeReaper() error { return nil }

// dieWithParent does nothing: the agent kills what a dead shim leaves behind.
func dieWithParent(*syscall.SysProcAttr) {}
