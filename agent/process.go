package agent

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// process is one process of this machine, as far as fray must know it.
type process struct {
	pid, parent, group, session int
}

// descendants returns every process below root, root itself left out.
func descendants(all []process, root int) []int {
	children := map[int][]int{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p.pid)
	}
	var found []int
	queue := []int{root}
	for len(queue) > 0 {
		next := children[queue[0]]
		queue = append(queue[1:], next...)
		found = append(found, next...)
	}
	return found
}

// nonceEnv marks every process of one start of a task, so that what escaped
// from its group and session is found even when its shim is gone.
const nonceEnv = "FRAY_TASK_NONCE"

// leftovers returns the living processes of a task whose shim may be gone:
// those in the session of the shim and the group of its command (a pid names
// neither anew while one member lives), those that carry the nonce, and
// whatever these started.
func leftovers(all []process, rec processRecord, nonce string) []int {
	found := map[int]bool{}
	add := func(pid int) {
		if pid > 1 && !found[pid] {
			found[pid] = true
		}
	}
	for _, p := range all {
		ours := rec.PID > 1 && p.group == rec.PID && p.session == rec.Shim
		if !ours && !hasEnv(p.pid, nonceEnv+"="+nonce) {
			continue
		}
		add(p.pid)
		for _, below := range descendants(all, p.pid) {
			add(below)
		}
	}
	pids := make([]int, 0, len(found))
	for pid := range found {
		pids = append(pids, pid)
	}
	return pids
}

// sweepPatience bounds how long a killed process may take to vanish; one that
// hangs in the kernel for longer is reported instead of waited for.
const sweepPatience = 10 * time.Second

// sweep kills what is left of a task without a shim, and returns once nothing is.
func sweep(rec processRecord, nonce string) error {
	deadline := time.Now().Add(sweepPatience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := processes()
		if err != nil {
			return fmt.Errorf("sweep task: %w", err)
		}
		left := leftovers(all, rec, nonce)
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			if err := signalProcess(pid, unix.SIGKILL); err != nil {
				return fmt.Errorf("sweep task: %w", err)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("sweep task: processes %v do not die", left)
		}
		<-tick.C
	}
}

// signalProcess signals a process, or with a negative pid a group; one that is
// gone is no error.
func signalProcess(pid int, sig unix.Signal) error {
	err := unix.Kill(pid, sig)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to %d: %w", unix.SignalName(sig), pid, err)
	}
	return nil
}

// groupAlive reports whether a process group has a member.
func groupAlive(group int) bool {
	err := unix.Kill(-group, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
