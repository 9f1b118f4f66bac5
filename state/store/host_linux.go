package store

import (
	"os"
	"strings"
)

// bootID tells one run of this machine's kernel from the next, "" if unknown.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
