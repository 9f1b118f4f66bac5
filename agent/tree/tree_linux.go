package tree

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncFileSystem syncs all of the file system of a path: for trees of so many
// files that syncing them one by one takes minutes.
func SyncFileSystem(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
