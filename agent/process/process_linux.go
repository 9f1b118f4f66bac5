package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// List lists the living processes of this machine. Zombies are left out, but for those
// of whose threads some still run: these hold files and devices.
func List() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []Process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		if p, ok := parseStat(pid, stat); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// parseStat reads proc_pid_stat(5): "pid (name) state ppid pgrp session …", where the
// name may hold anything; the number of threads is field 20, the start field 22. The
// state is that of the first thread, which may end before the others.
func parseStat(pid int, stat []byte) (Process, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return Process{}, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 20 {
		return Process{}, false
	}
	if ended := fields[0][0] == 'Z' || fields[0][0] == 'X'; ended && len(fields[17]) == 1 && fields[17][0] <= '1' {
		return Process{}, false
	}
	var ids [3]int
	for i := range ids {
		n, err := strconv.Atoi(string(fields[i+1]))
		if err != nil {
			return Process{}, false
		}
		ids[i] = n
	}
	started, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return Process{PID: pid, Parent: ids[0], Group: ids[1], Session: ids[2], Started: started}, err == nil
}

// HasEnvPrefix reports whether a process was started with an environment entry that
// begins so.
func HasEnvPrefix(pid int, prefix string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 {
		env = threadEnv(pid)
	}
	return bytes.Contains(append([]byte{0}, env...), append([]byte{0}, prefix...))
}

// threadEnv is the environment of a process whose first thread has ended: the others
// still have it. It is empty where the process has ended, or belongs to another user.
func threadEnv(pid int) []byte {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil || len(threads) < 2 {
		return nil
	}
	for _, thread := range threads {
		if env, err := os.ReadFile(tasks + "/" + thread.Name() + "/environ"); err == nil && len(env) > 0 {
			return env
		}
	}
	return nil
}

// InheritsOrphans is true where BecomeReaper works: a shim without children has no
// descendants either.
const InheritsOrphans = true

// BecomeReaper makes orphaned descendants children of this process.
func BecomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// DieWithParent makes a child die with the thread that starts it, which must
// therefore be locked to a goroutine that outlives the child.
func DieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// BootID changes whenever the machine is booted; "" where that is not known.
func BootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
