package process

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// sweepPatience bounds how long a killed process may take to vanish; one that
// hangs in the kernel for longer is reported instead of waited for.
const sweepPatience = 20 * time.Second

// Sweep kills what is left of a task without a shim, and returns once nothing is.
func Sweep(of Traces) error {
	if err := SweepAll(func(all []Process) []int { return Leftovers(all, of) }); err != nil {
		return fmt.Errorf("sweep task: %w", err)
	}
	return nil
}

// SweepAll kills the processes that find names, of all of this machine, until it names
// none, and returns once all of them have gone.
func SweepAll(find func([]Process) []int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(sweepPatience)
	s := sweep{list: List, kill: Signal, find: find, killed: map[int]uint64{}}
	for {
		left, err := s.pass()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not die", left)
		}
		<-tick.C
	}
}

// sweep is a sweep under way.
type sweep struct {
	list func() ([]Process, error)
	kill func(int, unix.Signal) error
	find func([]Process) []int
	// killed are the processes that were killed, by pid, with their starts. A process that
	// dies has lost its environment and perhaps its parent, and still holds its devices.
	killed map[int]uint64
}

// pass kills what is left and returns it. Processes are stopped first, so that none
// starts another while the others die.
func (s *sweep) pass() ([]int, error) {
	all, err := s.list()
	if err != nil {
		return nil, err
	}
	left := s.find(all)
	for _, p := range all {
		if started, ok := s.killed[p.PID]; ok && started == p.Started && !slices.Contains(left, p.PID) {
			left = append(left, p.PID)
		}
	}
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range left {
			if err := s.kill(pid, sig); err != nil {
				return left, err
			}
		}
	}
	for _, p := range all {
		if slices.Contains(left, p.PID) {
			s.killed[p.PID] = p.Started
		}
	}
	return left, nil
}
