package trajectory

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/rl"
)

// Eviction is a task whose trajectory was accepted and is too old to be trained on: the loader is to give it again.
type Eviction struct {
	rl.TaskAgain
	Tag rl.ModelTag `json:"tag"`
}

// isBefore reports whether a trajectory is of weights before a version. One whose version is not known counts as new.
func isBefore(h rl.Header, floor int64) bool { return h.Version != nil && *h.Version < floor }

// oldestOf is the first of the versions of weights that samples are of; nil: none is known.
func oldestOf(samples []*sample) *int64 {
	var oldest *int64
	for _, x := range samples {
		if v := x.header.Version; v != nil && (oldest == nil || *v < *oldest) {
			oldest = v
		}
	}
	return oldest
}

// holdsBack reports whether a batch of a model that is being processed would be too old if it were trained on after the
// next one: with several consumers that may happen. So the next one waits until it is acknowledged.
func (p *Pool) holdsBack(tag rl.ModelTag) bool {
	return slices.ContainsFunc(p.batches, func(b *given) bool {
		return b.tag == tag && b.oldest != nil && *b.oldest < p.floors[tag]
	})
}

// SetFloor has trajectories of versions of weights before floor rolled out again: those that are put from now on, and those
// that no batch has. What is left of their groups waits for them.
func (p *Pool) SetFloor(tag rl.ModelTag, floor int64) {
	tag = rl.TagOf(tag)
	p.floors[tag] = floor
	s := p.stores[tag]
	if s == nil {
		return
	}
	stale := s.stale(floor)
	if len(stale.samples) == 0 {
		return
	}
	gone, broken := map[*sample]bool{}, map[int64]bool{}
	for _, x := range stale.samples {
		gone[x], broken[x.group] = true, true
		p.evict(tag, x, stale.tasks)
	}
	for _, x := range s.takeOut(broken) {
		if gone[x] {
			continue
		}
		if key, err := groupKey(p.cfg.KeyList, x.header.Keys); err == nil { // Admit has read it
			p.join(s, key, x)
		}
	}
}

// Reject takes a batch back that weight sync does not count, as it has trajectories of versions before floor.
func (p *Pool) Reject(id string, floor int64) {
	i := slices.IndexFunc(p.batches, func(b *given) bool { return b.id == id && !b.isNotified })
	if i < 0 {
		return
	}
	b := p.batches[i]
	p.batches = slices.Delete(p.batches, i, i+1)
	s := p.store(b.tag)
	s.finished = append(slices.Clone(b.samples), s.finished...)
	for _, number := range b.partial {
		s.partial[number] = true
	}
	p.since[b.tag] = b.since
	p.SetFloor(b.tag, floor)
}

// staleSamples are those that are to go, and how many each of their tasks has.
type staleSamples struct {
	samples []*sample
	tasks   map[string]int
}

// stale are the samples of versions before floor, and the others of their tasks, which are rolled out as a whole.
func (s *store) stale(floor int64) staleSamples {
	all := s.all()
	out := staleSamples{tasks: map[string]int{}}
	for _, x := range all {
		if isBefore(x.header, floor) {
			out.tasks[x.header.TaskID] = 0
		}
	}
	for _, x := range all {
		_, again := out.tasks[x.header.TaskID]
		if isBefore(x.header, floor) || again && x.header.TaskID != "" {
			out.samples = append(out.samples, x)
			out.tasks[x.header.TaskID]++
		}
	}
	return out
}

// all are the samples that no batch has: those of complete groups, and then those of the others, in their order.
func (s *store) all() []*sample {
	out := slices.Clone(s.finished)
	for _, g := range s.incomplete() {
		out = append(out, g.samples...)
	}
	return out
}

// takeOut removes groups, and returns their samples in their order.
func (s *store) takeOut(groups map[int64]bool) []*sample {
	out := slices.DeleteFunc(s.all(), func(x *sample) bool { return !groups[x.group] })
	s.finished = slices.DeleteFunc(s.finished, func(x *sample) bool { return groups[x.group] })
	maps.DeleteFunc(s.open, func(_ string, g *group) bool { return groups[g.number] })
	maps.DeleteFunc(s.partial, func(number int64, _ bool) bool { return groups[number] })
	return out
}

// evict gives up a sample. Its task is rolled out again, unless a batch has another trajectory of it, which would be
// trained on twice then.
func (p *Pool) evict(tag rl.ModelTag, x *sample, tasks map[string]int) {
	p.bytes -= x.size
	task := x.header.TaskID
	n := tasks[task]
	delete(tasks, task) // one eviction of each
	if task == "" || n == 0 {
		return
	}
	if known := p.accepted.known[acceptedKey(tag, task)]; known != nil && n < len(known.sums) {
		return
	}
	p.accepted.forget(tag, task)
	p.evictions++
	p.evicted = append(p.evicted, Eviction{Tag: tag, TaskAgain: rl.TaskAgain{Number: p.evictions, TaskID: task, Epoch: x.header.Epoch}})
}

// Evicted are the tasks that the loader is to give again, in the order of their numbers.
func (p *Pool) Evicted() []rl.TaskAgain {
	out := make([]rl.TaskAgain, len(p.evicted))
	for i, e := range p.evicted {
		out[i] = e.TaskAgain
	}
	return out
}

// Returned takes notice that the loader knows of the tasks up to a number.
func (p *Pool) Returned(number int64) {
	p.evicted = slices.DeleteFunc(p.evicted, func(e Eviction) bool { return e.Number <= number })
}

// Epoch is that of the run, as the last Rewind has set it.
func (p *Pool) Epoch() int { return p.epoch }
