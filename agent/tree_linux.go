package agent

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bootID changes whenever the machine is booted; "" where that is not known.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// syncFileSystem syncs all of the file system of a path: for trees of so many
// files that syncing them one by one takes minutes.
func syncFileSystem(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
