//go:build !linux

package examples

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// processesOf returns the processes of this user that have a directory in their
// arguments or their environment.
func processesOf(t *testing.T, dir string) []process {
	t.Helper()
	out, err := exec.Command("ps", "-x", "-ww", "-E", "-o", "pid=,ppid=,command=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 3 || !strings.Contains(line, dir) {
			continue
		}
		pid, pidErr := strconv.Atoi(words[0])
		parent, parentErr := strconv.Atoi(words[1])
		if pidErr != nil || parentErr != nil || pid == os.Getpid() {
			continue
		}
		// ps puts the environment behind the arguments, without a border.
		found = append(found, process{pid: pid, parent: parent, args: words[2:], env: words[2:]})
	}
	return found
}
