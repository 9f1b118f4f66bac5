package trajectory

import (
	"hash/crc32"
	"slices"

	"github.com/fray-ml/fray/rl"
)

// accepted are the tasks whose trajectories were stored, so that one that comes again, from a worker that
// did not get the answer or from another that took the task over, is not stored twice.
type accepted struct {
	limit int
	known map[string]*acceptedTask
	order []*acceptedTask // oldest first
}

// acceptedTask is what was stored of a task. One lease may put several trajectories, which differ.
type acceptedTask struct {
	Key   string   `json:"key"`
	Lease string   `json:"lease,omitempty"`
	Sums  []uint64 `json:"sums"`
}

func newAccepted(limit int) *accepted {
	return &accepted{limit: limit, known: map[string]*acceptedTask{}}
}

func acceptedKey(tag rl.ModelTag, task string) string { return task + " " + tag }

// sumOf tells the payloads of one lease apart.
func sumOf(payload []byte) uint64 {
	return uint64(len(payload))<<32 | uint64(crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)))
}

// has reports whether a trajectory was stored: by the same lease with the same bytes, or by another lease of its task.
func (a *accepted) has(tag rl.ModelTag, h rl.Header, payload []byte) bool {
	if h.TaskID == "" {
		return false
	}
	task := a.known[acceptedKey(tag, h.TaskID)]
	if task == nil {
		return false
	}
	if task.Lease != h.Lease || h.Lease == "" {
		return true
	}
	return slices.Contains(task.Sums, sumOf(payload))
}

func (a *accepted) add(tag rl.ModelTag, h rl.Header, payload []byte) {
	if h.TaskID == "" {
		return
	}
	key := acceptedKey(tag, h.TaskID)
	task := a.known[key]
	if task == nil {
		task = &acceptedTask{Key: key, Lease: h.Lease}
		a.insert(task)
	}
	task.Sums = append(task.Sums, sumOf(payload))
}

func (a *accepted) insert(task *acceptedTask) {
	a.known[task.Key] = task
	a.order = append(a.order, task)
	for len(a.order) > a.limit {
		if oldest := a.order[0]; a.known[oldest.Key] == oldest {
			delete(a.known, oldest.Key)
		}
		a.order[0] = nil
		a.order = a.order[1:]
	}
}

// forget has a task accepted again.
func (a *accepted) forget(tag rl.ModelTag, task string) { delete(a.known, acceptedKey(tag, task)) }

// tasks are those that are known, the oldest first.
func (a *accepted) tasks() []*acceptedTask {
	out := make([]*acceptedTask, 0, len(a.known))
	for _, task := range a.order {
		if a.known[task.Key] == task { // else it was forgotten
			out = append(out, task)
		}
	}
	return out
}
