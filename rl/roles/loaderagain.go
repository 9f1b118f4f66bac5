package roles

import "github.com/fray-ml/fray/rl"

// RollOutAgain has tasks come next that were done, as a pool does not use their trajectories. The pool numbers its tasks, so
// that the call may be repeated; the epoch of the run is its own. It returns the tasks whose content is not known any more:
// items that were added long ago.
func (l *Loader) RollOutAgain(pool string, epoch int, tasks []rl.TaskAgain) ([]string, error) {
	c := loaderCommand{Op: opAgain, Source: pool, N: epoch, Tasks: tasks}
	l.mu.Lock()
	lost := l.machine.Again(pool, epoch, tasks)
	at, err := l.note(c, nil)
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return lost, l.record.Wait(at)
}
