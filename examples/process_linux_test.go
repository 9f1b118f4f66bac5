package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// processesOf returns the processes that have to do with a directory: it is in
// their arguments or their environment, or they work in it.
func processesOf(t *testing.T, dir string) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that cannot be read has just ended, or belongs to another user.
		base := filepath.Join("/proc", entry.Name())
		args, _ := os.ReadFile(filepath.Join(base, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(base, "environ"))
		cwd, _ := os.Readlink(filepath.Join(base, "cwd"))
		if bytes.Contains(args, []byte(dir)) || bytes.Contains(env, []byte(dir)) || strings.HasPrefix(cwd, dir) {
			found = append(found, process{pid: pid, parent: parentOf(base), args: fields(args), env: fields(env)})
		}
	}
	return found
}

// parentOf reads the second field after the command's name, which is in brackets.
func parentOf(base string) int {
	stat, _ := os.ReadFile(filepath.Join(base, "stat"))
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	_, rest, _ = strings.Cut(rest, " ")
	parent, _, _ := strings.Cut(rest, " ")
	pid, err := strconv.Atoi(parent)
	if err != nil {
		return 0 // it has just ended
	}
	return pid
}

func fields(data []byte) []string {
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
}
