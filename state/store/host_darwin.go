package store

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bootID identifies a run of this machine's kernel, "" if unknown.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// machineID identifies this machine, also after a reboot.
func machineID() string {
	id, err := unix.Sysctl("kern.uuid")
	if err != nil {
		return "unknown"
	}
	return id
}

// pidNamespace names the numbering of processes that this one sees: there is one.
func pidNamespace() string { return "host" }

func deviceOf(stat *syscall.Stat_t) uint64 { return uint64(stat.Dev) }

// isRunning reports whether a process is not suspended by a signal, as far as
// can be known.
func isRunning(pid int) bool {
	const stopped = 4 // SSTOP of sys/proc.h
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err != nil || p.Proc.P_stat != stopped
}
