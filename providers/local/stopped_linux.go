package local

import (
	"bytes"
	"os"
	"strconv"
)

// isStopped reports whether a process is suspended, by a signal (proc_pid_stat(5)).
func isStopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false // gone, or another user's
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before may hold anything
	return len(fields) > 0 && string(fields[0]) == "T"
}
