package profiler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// mayTrace returns why this process may not read the memory of another one, or nil. To open
// that memory takes the right that ptrace(2) takes, and py-spy needs.
func mayTrace(pid int) error {
	f, err := os.Open(procFile(pid, "mem"))
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrPermission) {
		return nil // it ended, or there is no such file here: the tool reports more
	}
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return fmt.Errorf("the agent may not read the memory of process %d: %s", pid, remedy(strings.TrimSpace(string(scope)), os.Geteuid()))
}

// remedy is how the right to trace is given on a machine with a value of
// kernel.yama.ptrace_scope, "" where the kernel has none, to a process of a user.
func remedy(scope string, user int) string {
	const grant = "run the agent as root, or give it the capability CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)"
	switch {
	case scope == "3":
		return "kernel.yama.ptrace_scope is 3, which forbids it until the machine boots with another value"
	case scope == "1" && user != 0:
		return "kernel.yama.ptrace_scope is 1; set it with sysctl kernel.yama.ptrace_scope=0 on the host, or " + grant
	case scope == "2" && user != 0:
		return "kernel.yama.ptrace_scope is 2; " + grant
	}
	return "it lacks the right to trace processes of other users or containers; " + grant
}
