package trajectory

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/rl"
)

// State is a pool as JSON can hold it; beside it stand the payloads, and behind them the tasks that were accepted.
type State struct {
	Epoch     int                       `json:"epoch"`
	NextBatch int64                     `json:"next_batch"`
	NextGroup int64                     `json:"next_group"`
	Evictions int64                     `json:"evictions,omitempty"`
	Evicted   []Eviction                `json:"evicted,omitempty"`
	Floors    map[rl.ModelTag]int64     `json:"floors,omitempty"`
	Stores    []storeState              `json:"stores"`
	Batches   []batchState              `json:"batches"`
	Locked    []rl.ModelTag             `json:"locked"`
	Since     map[rl.ModelTag]time.Time `json:"since"`
}

type storeState struct {
	Tag      rl.ModelTag   `json:"tag"`
	Finished []sampleState `json:"finished"`
	Open     []openState   `json:"open"`
	Partial  []int64       `json:"partial"`
}

type openState struct {
	Number  int64         `json:"number"`
	Samples []sampleState `json:"samples"`
}

type batchState struct {
	ID         string        `json:"id"`
	Tag        rl.ModelTag   `json:"tag"`
	Consumer   string        `json:"consumer"`
	Samples    []sampleState `json:"samples"`
	Partial    []int64       `json:"partial,omitempty"`
	Since      time.Time     `json:"since,omitzero"`
	Rollout    time.Duration `json:"rollout"`
	IsNotified bool          `json:"notified"`
}

type sampleState struct {
	Header rl.Header `json:"header"`
	Group  int64     `json:"group"`
}

// Snapshot returns the state, and beside it the payloads in its order, which are not to be changed.
func (p *Pool) Snapshot() (State, [][]byte) {
	var payloads [][]byte
	samples := func(from []*sample) []sampleState {
		out := make([]sampleState, len(from))
		for i, x := range from {
			out[i] = sampleState{Header: x.header, Group: x.group}
			payloads = append(payloads, x.payload)
		}
		return out
	}
	state := State{
		Epoch: p.epoch, NextBatch: p.nextBatch, NextGroup: p.nextGroup, Evictions: p.evictions, Evicted: slices.Clone(p.evicted),
		Floors: maps.Clone(p.floors), Since: maps.Clone(p.since), Locked: slices.Sorted(maps.Keys(p.locked)),
	}
	for _, tag := range p.tags {
		s := p.stores[tag]
		entry := storeState{Tag: tag, Finished: samples(s.finished)}
		for _, g := range s.incomplete() {
			entry.Open = append(entry.Open, openState{Number: g.number, Samples: samples(g.samples)})
		}
		entry.Partial = slices.Sorted(maps.Keys(s.partial))
		state.Stores = append(state.Stores, entry)
	}
	for _, b := range p.batches {
		state.Batches = append(state.Batches, batchState{
			ID: b.id, Tag: b.tag, Consumer: b.consumer, Samples: samples(b.samples), Partial: b.partial, Since: b.since, Rollout: b.rollout, IsNotified: b.isNotified,
		})
	}
	return state, append(payloads, p.accepted.encode())
}

// Restore makes the pool what it was at Snapshot.
func (p *Pool) Restore(state State, payloads [][]byte) error {
	p.clear()
	p.epoch, p.nextBatch, p.nextGroup = state.Epoch, state.NextBatch, state.NextGroup
	p.evictions, p.evicted = state.Evictions, slices.Clone(state.Evicted)
	maps.Copy(p.floors, state.Floors)
	missing := 0
	samples := func(from []sampleState) []*sample {
		out := make([]*sample, 0, len(from))
		for _, entry := range from {
			if len(payloads) == 0 {
				missing++
				continue
			}
			x := &sample{header: entry.Header, payload: payloads[0], group: entry.Group, size: sizeOf(entry.Header, payloads[0])}
			payloads = payloads[1:]
			p.bytes += x.size
			out = append(out, x)
		}
		return out
	}
	maps.Copy(p.since, state.Since)
	for _, tag := range state.Locked {
		p.locked[tag] = true
	}
	for _, entry := range state.Stores {
		s := p.store(entry.Tag)
		s.finished = samples(entry.Finished)
		for _, open := range entry.Open {
			g := &group{number: open.Number, samples: samples(open.Samples)}
			if len(g.samples) == 0 {
				continue
			}
			key, err := groupKey(p.cfg.KeyList, g.samples[0].header.Keys)
			if err != nil {
				return fmt.Errorf("restore an incomplete group with key_list %q: %w; was the configuration changed?", p.cfg.KeyList, err)
			}
			s.open[key] = g
		}
		for _, number := range entry.Partial {
			s.partial[number] = true
		}
	}
	for _, entry := range state.Batches {
		b := &given{
			id: entry.ID, tag: entry.Tag, consumer: entry.Consumer, samples: samples(entry.Samples),
			partial: entry.Partial, since: entry.Since, rollout: entry.Rollout, isNotified: entry.IsNotified,
		}
		b.oldest = oldestOf(b.samples)
		p.batches = append(p.batches, b)
	}
	if missing > 0 || len(payloads) != 1 {
		return fmt.Errorf("restore the trajectories: %d payloads are missing, %d have no header", missing, max(0, len(payloads)-1))
	}
	return p.accepted.decode(payloads[0])
}
