package trajectory

import (
	"slices"

	"github.com/fray-ml/fray/rl"
)

// Untrained are the tasks whose trajectories the pool has, all of each, and those that the loader is to give again.
func (p *Pool) Untrained() rl.Untrained {
	held := map[string]int{} // trajectories by acceptedKey
	var keys, waiting []string
	count := func(samples []*sample) {
		for _, x := range samples {
			if x.header.TaskID == "" {
				continue
			}
			key := acceptedKey(x.header.ModelTag, x.header.TaskID)
			if held[key] == 0 {
				keys, waiting = append(keys, key), append(waiting, x.header.TaskID)
			}
			held[key]++
		}
	}
	for _, b := range p.batches {
		count(b.samples)
	}
	for _, tag := range p.tags {
		count(p.stores[tag].all())
	}
	var out rl.Untrained
	for i, key := range keys {
		if known := p.accepted.known[key]; known == nil || held[key] >= len(known.sums) {
			out.Waiting = append(out.Waiting, waiting[i])
		} else {
			out.Trained = append(out.Trained, waiting[i])
		}
	}
	for _, e := range p.evicted {
		out.Waiting = append(out.Waiting, e.TaskID)
	}
	slices.Sort(out.Waiting)
	out.Waiting = slices.Compact(out.Waiting)
	return out
}
