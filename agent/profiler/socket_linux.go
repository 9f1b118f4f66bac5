package profiler

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// namedInside is the id by which a process knows itself: in a container it is another one.
func (m *measurement) namedInside(pid int) int {
	status, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return pid
	}
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(ids)
			if inner, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
				return inner
			}
		}
	}
	return pid
}

// shortSocket is a name of a socket that fits into an address, which has 108 bytes. The
// directory stays open until this process ends.
func shortSocket(path string) string {
	if len(path) < 100 {
		return path
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return path
	}
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path)
}
