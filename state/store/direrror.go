package store

import (
	"errors"
	"fmt"
	"syscall"
)

// fileError describes what could not be done to which file of the store, and what
// to do about it. The operating system's error is wrapped; the paths of
// temporary files, which the caller does not know, are left out.
func fileError(verb, path string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return fmt.Errorf("%s %s: %w", verb, path, err)
	}
	if do := remedy(errno); do != "" {
		return fmt.Errorf("%s %s: %w; %s", verb, path, errno, do)
	}
	return fmt.Errorf("%s %s: %w", verb, path, errno)
}

func remedy(errno syscall.Errno) string {
	remedies := map[syscall.Errno]string{
		syscall.ENOSPC:       "the old content is intact: free space on that file system and try again",
		syscall.EDQUOT:       "the old content is intact: free space or raise the quota and try again",
		syscall.EROFS:        "make its file system writable or put the store elsewhere",
		syscall.EACCES:       "give yourself permission on it (chmod, chown) or put the store elsewhere",
		syscall.EPERM:        "give yourself permission on it (chmod, chown) or put the store elsewhere",
		syscall.ENOTDIR:      "a file is where the store needs a directory; move it away",
		syscall.EISDIR:       "a directory is where the store needs a file; move it away",
		syscall.ENOTEMPTY:    "a directory is where the store needs a file; move it away",
		syscall.EEXIST:       "something else is where the store needs a file; move it away",
		syscall.ENOENT:       "the directory is not there; it was moved or removed",
		syscall.ENAMETOOLONG: "put the store into a directory with a shorter path",
		syscall.EMFILE:       "raise the limit of open files (ulimit -n)",
		syscall.EIO:          "the disk reports an error; check it before trying again",
	}
	return remedies[errno]
}
