package local

import "golang.org/x/sys/unix"

// stoppedState is SSTOP of sys/proc.h.
const stoppedState = 4

// isStopped reports whether a process is suspended, by a signal.
func isStopped(pid int) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && p.Proc.P_stat == stoppedState
}
