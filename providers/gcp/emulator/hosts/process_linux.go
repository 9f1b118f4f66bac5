package hosts

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processes lists the living processes of this machine; a process is marked if its
// mark begins as given.
func processes(mark string) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		p, ok := parseStat(pid, stat)
		if !ok {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		p.marked = err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+markVariable+"="+mark))
		all = append(all, p)
	}
	return all, nil
}

// parseStat reads proc_pid_stat(5): "pid (name) state ppid pgrp session …",
// where the name may hold anything. Zombies are left out.
func parseStat(pid int, stat []byte) (process, bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return process{}, false
	}
	session, err := strconv.Atoi(string(fields[3]))
	return process{pid: pid, parent: parent, session: session}, err == nil
}
