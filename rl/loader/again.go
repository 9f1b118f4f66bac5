package loader

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/rl"
)

// kept is how many added items are known after their tasks were done, for tasks that are given again.
const kept = 1024

// mark is how far a loader is with the tasks of a source that are to be given again.
type mark struct {
	Epoch  int   `json:"epoch"`
	Number int64 `json:"number"`
}

// Again has tasks come next that were done, as their trajectories are not used: those of a source, which numbers them. Those
// whose numbers were had already, or that are of another epoch of the run, change nothing. A task that is leased is given
// again once its lease ends. It returns the tasks whose content is not known any more.
func (l *Loader) Again(source string, epoch int, tasks []rl.TaskAgain) (lost []string) {
	had := l.state.Again[source]
	if had.Epoch < epoch {
		had = mark{Epoch: epoch}
	}
	waiting := map[string]bool{}
	for _, entry := range l.state.Buffer {
		waiting[entry.TaskID()] = true
	}
	leased := map[string]*lease{}
	for _, held := range l.leases {
		leased[held.Entry.TaskID()] = held
	}
	var front []Entry
	for _, task := range tasks {
		if epoch < had.Epoch || task.Number <= had.Number {
			continue
		}
		had.Number = task.Number
		if task.Epoch != l.state.Epoch || waiting[task.TaskID] {
			continue
		}
		if held := leased[task.TaskID]; held != nil {
			held.Again = true
			continue
		}
		entry, ok := l.entryOf(task.TaskID)
		if !ok {
			lost = append(lost, task.TaskID)
			continue
		}
		waiting[task.TaskID] = true
		front = append(front, entry)
	}
	if l.state.Again == nil {
		l.state.Again = map[string]mark{}
	}
	l.state.Again[source] = had
	l.state.Buffer = slices.Insert(l.state.Buffer, 0, front...)
	return lost
}

// entryOf is the task of an ID that was done.
func (l *Loader) entryOf(taskID string) (Entry, bool) {
	var e Entry
	if _, err := fmt.Sscanf(taskID, "%d/%d/%d", &e.Pass, &e.Index, &e.Run); err == nil {
		return e, e.TaskID() == taskID && e.Pass >= 0 && e.Pass < l.cfg.Passes && e.Index >= 0 && e.Index < l.cfg.Length && e.Run >= 0 && e.Run < l.cfg.Repeat
	}
	for _, added := range l.state.Done {
		if added.TaskID() == taskID {
			return added, true
		}
	}
	return e, false
}

// done notes the end of a task that may be given again.
func (l *Loader) done(e Entry) {
	if e.Added == nil {
		return
	}
	l.state.Done = append(l.state.Done, e)
	if extra := len(l.state.Done) - kept; extra > 0 {
		l.state.Done = slices.Clone(l.state.Done[extra:])
	}
}
