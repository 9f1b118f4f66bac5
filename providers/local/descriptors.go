package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// sealDescriptors keeps what this process was handed by its own parent (a
// shell's pipes, make's job server) from reaching agents: they stay for long,
// and a reader of such a pipe to its end would wait for them.
func sealDescriptors() error {
	entries, err := os.ReadDir("/dev/fd")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
