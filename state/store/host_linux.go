package store

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// bootID identifies a run of this machine's kernel, "" if unknown.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// machineID identifies this machine, also after a reboot (machine-id(5)).
func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(id)) > 0 {
			return string(bytes.TrimSpace(id))
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// pidNamespace names the numbering of processes that this one sees, "" if unknown.
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

func deviceOf(stat *syscall.Stat_t) uint64 { return stat.Dev }

// isRunning reports whether a process is not suspended by a signal, as far as
// can be known (proc_pid_stat(5)).
func isRunning(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true // gone, or another machine's
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before may hold anything
	return len(fields) == 0 || string(fields[0]) != "T"
}
