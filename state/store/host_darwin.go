package store

import "golang.org/x/sys/unix"

// bootID tells one run of this machine's kernel from the next, "" if unknown.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
