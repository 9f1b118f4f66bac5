package profileserver

import (
	"net"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// answers reports whether a process listens at a socket.
func answers(path string) bool {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(dir) }() // it was only looked into
	conn, err := net.Dial("unix", "/proc/self/fd/"+strconv.Itoa(dir)+"/"+filepath.Base(path))
	return err == nil && conn.Close() == nil
}

// listen listens at a socket in a directory of any length: an address has 108 bytes.
func listen(path string) (net.Listener, error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(dir) }() // it was only looked into
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path)})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its name is no longer valid then
	return l, unix.Chmod(path, 0o600)
}
