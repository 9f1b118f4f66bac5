package store

import "golang.org/x/sys/unix"

// bootID tells one run of this machine's kernel from the next, "" if unknown.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// isRunning reports whether a process is not suspended by a signal, as far as
// can be known.
func isRunning(pid int) bool {
	const stopped = 4 // SSTOP of sys/proc.h
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err != nil || p.Proc.P_stat != stopped
}
