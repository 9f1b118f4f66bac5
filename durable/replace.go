package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Replace replaces a file by way of a temporary one beside it. It gets the
// mode that is given, and keeps its owner where that is allowed.
func Replace(path string, data []byte, mode fs.FileMode) error {
	tmp, err := Create(path, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer tmp.Discard()
	_, err = tmp.Write(data)
	if info, statErr := os.Stat(path); statErr == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
			_ = tmp.Chown(int(owner.Uid), int(owner.Gid))
		}
	}
	if err == nil {
		err = errors.Join(tmp.Chmod(mode), tmp.Commit()) // another owner's file loses its mode
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
