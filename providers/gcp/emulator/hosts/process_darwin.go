package hosts

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// zombieState is SZOMB of sys/proc.h.
const zombieState = 5

// processes lists the living processes of this machine; a process is marked if its
// mark begins as given.
func processes(mark string) ([]process, error) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make([]process, 0, len(list))
	for _, p := range list {
		if p.Proc.P_stat == zombieState {
			continue
		}
		pid := int(p.Proc.P_pid)
		session, err := unix.Getsid(pid)
		if err != nil {
			continue // it ended meanwhile
		}
		args, err := unix.SysctlRaw("kern.procargs2", pid)
		marked := err == nil && bytes.Contains(args, []byte("\x00"+markVariable+"="+mark))
		all = append(all, process{pid: pid, parent: int(p.Eproc.Ppid), session: session, marked: marked})
	}
	return all, nil
}
