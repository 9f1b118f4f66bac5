package process

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that dies is found by nothing any more: the sweep goes on until it has gone.
// A new process with its pid is left alone.
func TestSweepWaitsForTheDying(t *testing.T) {
	const task, child = 10, 11
	alive := []Process{{PID: task, Parent: 1, Started: 1}, {PID: child, Parent: task, Started: 2}}
	dying := []Process{{PID: child, Parent: 1, Started: 2}, {PID: 12, Parent: 1, Started: 3}}
	reused := []Process{{PID: child, Parent: 1, Started: 4}}
	lists := [][]Process{alive, dying, reused}
	var killed []int
	s := sweep{
		list: func() ([]Process, error) {
			next := lists[0]
			lists = lists[1:]
			return next, nil
		},
		kill: func(pid int, sig unix.Signal) error {
			if sig == unix.SIGKILL {
				killed = append(killed, pid)
			}
			return nil
		},
		find: func(all []Process) []int {
			if slices.ContainsFunc(all, func(p Process) bool { return p.PID == task }) {
				return append(Descendants(all, task), task)
			}
			return nil
		},
		killed: map[int]uint64{},
	}
	for i, want := range [][]int{{child, task}, {child}, nil} {
		if left, err := s.pass(); err != nil || !slices.Equal(left, want) {
			t.Errorf("pass %d: %v are left, %v, want %v", i, left, err, want)
		}
	}
	if want := []int{child, task, child}; !slices.Equal(killed, want) {
		t.Errorf("killed %v, want %v", killed, want)
	}
}
