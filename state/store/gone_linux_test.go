package store

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A holder that was killed and whose parent has not taken notice is gone.
func TestAZombieIsGone(t *testing.T) {
	child := exec.Command("true")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	var info unix.Siginfo
	for { // until it has ended; it stays to be waited for
		err := unix.Waitid(unix.P_PID, child.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
	lease := newLease(LeaseConfig{})
	lease.PID = child.Process.Pid
	if !lease.Gone() {
		t.Error("got that the holder lives, want that it is gone")
	}
}
