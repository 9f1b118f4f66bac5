package trajectory

import (
	"encoding/binary"
	"errors"
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
	key   string
	lease string
	sums  []uint64
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
	if task.lease != h.Lease || h.Lease == "" {
		return true
	}
	return slices.Contains(task.sums, sumOf(payload))
}

func (a *accepted) add(tag rl.ModelTag, h rl.Header, payload []byte) {
	if h.TaskID == "" {
		return
	}
	key := acceptedKey(tag, h.TaskID)
	task := a.known[key]
	if task == nil {
		task = &acceptedTask{key: key, lease: h.Lease}
		a.insert(task)
	}
	task.sums = append(task.sums, sumOf(payload))
}

func (a *accepted) insert(task *acceptedTask) {
	a.known[task.key] = task
	a.order = append(a.order, task)
	for len(a.order) > a.limit {
		if oldest := a.order[0]; a.known[oldest.key] == oldest {
			delete(a.known, oldest.key)
		}
		a.order[0] = nil
		a.order = a.order[1:]
	}
}

// forget has a task accepted again.
func (a *accepted) forget(tag rl.ModelTag, task string) { delete(a.known, acceptedKey(tag, task)) }

// encode returns the tasks that are known, the oldest first: of each its key and its lease as a length and bytes, and its sums
// as their number and each of them. Numbers are varints. There may be hundreds of thousands, for which JSON would take long.
func (a *accepted) encode() []byte {
	out := make([]byte, 0, 64*len(a.known))
	text := func(s string) {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	for _, task := range a.order {
		if a.known[task.key] != task {
			continue // it was forgotten
		}
		text(task.key)
		text(task.lease)
		out = binary.AppendUvarint(out, uint64(len(task.sums)))
		for _, sum := range task.sums {
			out = binary.AppendUvarint(out, sum)
		}
	}
	return out
}

// errAccepted is what encode has not written.
var errAccepted = errors.New("the tasks that were accepted are damaged")

// decode adds the tasks that encode has written.
func (a *accepted) decode(data []byte) error {
	damaged := false
	number := func() uint64 {
		n, used := binary.Uvarint(data)
		if used <= 0 {
			damaged, used = true, 0
		}
		data = data[used:]
		return n
	}
	text := func() string {
		n := number()
		if n > uint64(len(data)) {
			damaged, n = true, 0
		}
		s := string(data[:n])
		data = data[n:]
		return s
	}
	for len(data) > 0 {
		task := &acceptedTask{key: text(), lease: text()}
		for n := number(); n > 0 && !damaged; n-- {
			task.sums = append(task.sums, number())
		}
		if damaged {
			return errAccepted
		}
		a.insert(task)
	}
	return nil
}
