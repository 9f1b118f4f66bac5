// Package trainbatch is the state machine of a train batch pool: batches wait in the order in which they came,
// for each model, and stay until who trained on them acknowledges it.
//
// It has no clock, no lock and no I/O; package roles hosts it. Start with Pool.
package trainbatch

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/rl"
)

// Config is a pool's.
type Config struct {
	// MaxBytes is of the batches that wait; one fits whatever its size. 0: 1 GiB. Those that a consumer has stay beside
	// them: a train worker acknowledges them with its next checkpoint, which it may not reach without further batches.
	MaxBytes int64
	Remember int // how many IDs are known as seen; 0: 65,536
}

const (
	defaultMaxBytes = 1 << 30
	defaultRemember = 1 << 16
)

// batch is one that is not acknowledged.
type batch struct {
	TrainHeader rl.TrainHeader `json:"header"`
	Consumer    string         `json:"consumer,omitempty"`
	Given       bool           `json:"given,omitempty"`
	payload     []byte
}

// Pool holds batches until they are acknowledged.
type Pool struct {
	cfg     Config
	batches []*batch // in the order in which they came
	bytes   int64    // of all of them
	given   int64    // bytes of those that a consumer has
	seen    map[string]bool
	order   []string // of seen, oldest first
}

// New returns an empty pool.
func New(cfg Config) (*Pool, error) {
	if cfg.MaxBytes < 0 || cfg.Remember < 0 {
		return nil, fmt.Errorf("train batch pool: max_bytes %d, remember %d: none may be negative", cfg.MaxBytes, cfg.Remember)
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if cfg.Remember == 0 {
		cfg.Remember = defaultRemember
	}
	return &Pool{cfg: cfg, seen: map[string]bool{}}, nil
}

// Seen reports whether a batch of the ID was put.
func (p *Pool) Seen(id string) bool { return id != "" && p.seen[id] }

// Fits reports whether there is room for a payload.
func (p *Pool) Fits(payload []byte) bool {
	waiting := p.bytes - p.given
	return waiting == 0 || waiting+int64(len(payload)) <= p.cfg.MaxBytes
}

// Overhang is how many bytes the batches that consumers have take beyond MaxBytes; 0: none.
func (p *Pool) Overhang() int64 { return max(0, p.given-p.cfg.MaxBytes) }

// Put stores a batch, and reports whether it is a new one.
func (p *Pool) Put(h rl.TrainHeader, payload []byte) bool {
	if p.Seen(h.ID) {
		return false
	}
	h.ModelTag = rl.TagOf(h.ModelTag)
	p.note(h.ID)
	p.batches = append(p.batches, &batch{TrainHeader: h, payload: payload})
	p.bytes += int64(len(payload))
	return true
}

func (p *Pool) note(id string) {
	if id == "" {
		return
	}
	p.seen[id] = true
	p.order = append(p.order, id)
	for len(p.order) > p.cfg.Remember {
		delete(p.seen, p.order[0])
		p.order = p.order[1:]
	}
}

// Get gives the oldest batch of a model: the one that the consumer has already, else one that no consumer has.
// Without a consumer the batch counts as acknowledged at once. Changed is whether the pool is another one now.
func (p *Pool) Get(tag rl.ModelTag, consumer string) (out *rl.TrainBatch, changed bool) {
	b := p.next(rl.TagOf(tag), consumer)
	if b == nil {
		return nil, false
	}
	out = &rl.TrainBatch{ID: b.TrainHeader.ID, Header: b.TrainHeader, Payload: b.payload}
	if consumer == "" {
		p.remove(slices.Index(p.batches, b))
		return out, true
	}
	changed = !b.Given
	if changed {
		p.given += int64(len(b.payload))
	}
	b.Given, b.Consumer = true, consumer
	return out, changed
}

func (p *Pool) next(tag rl.ModelTag, consumer string) *batch {
	var free *batch
	for _, b := range p.batches {
		switch {
		case b.TrainHeader.ModelTag != tag:
		case b.Given && consumer != "" && b.Consumer == consumer:
			return b
		case !b.Given && free == nil:
			free = b
		}
	}
	return free
}

func (p *Pool) remove(i int) {
	size := int64(len(p.batches[i].payload))
	p.bytes -= size
	if p.batches[i].Given {
		p.given -= size
	}
	p.batches = slices.Delete(p.batches, i, i+1)
}

// Ack forgets a batch that was given, and reports whether there was one.
func (p *Pool) Ack(id string) bool {
	i := slices.IndexFunc(p.batches, func(b *batch) bool { return b.Given && b.TrainHeader.ID == id })
	if i < 0 {
		return false
	}
	p.remove(i)
	return true
}

// Release has the batches of a consumer given again, in their old places, and returns how many there are.
func (p *Pool) Release(consumer string) int {
	n := 0
	for _, b := range p.batches {
		if b.Given && consumer != "" && b.Consumer == consumer {
			b.Given, b.Consumer = false, ""
			p.given -= int64(len(b.payload))
			n++
		}
	}
	return n
}

// Untrained are the tasks of the batches that no consumer has, and of those that one has: a train worker takes a batch
// to train on it.
func (p *Pool) Untrained() rl.Untrained {
	var out rl.Untrained
	for _, b := range p.batches {
		if b.Given {
			out.Trained = append(out.Trained, b.TrainHeader.Tasks...)
		} else {
			out.Waiting = append(out.Waiting, b.TrainHeader.Tasks...)
		}
	}
	return out
}

// Clear empties the pool, as the run goes back to a checkpoint: batches that were seen may be made again.
func (p *Pool) Clear() {
	p.batches, p.bytes, p.given, p.order = nil, 0, 0, nil
	clear(p.seen)
}

// IsEmpty reports whether every batch was acknowledged.
func (p *Pool) IsEmpty() bool { return len(p.batches) == 0 }

// Sizes are how many batches each model has, those that are not acknowledged among them.
func (p *Pool) Sizes() map[rl.ModelTag]int {
	out := map[rl.ModelTag]int{}
	for _, b := range p.batches {
		out[b.TrainHeader.ModelTag]++
	}
	return out
}

// Bytes is the size of all payloads.
func (p *Pool) Bytes() int64 { return p.bytes }

// State is a pool as JSON can hold it; the payloads stand beside it.
type State struct {
	Batches []batch  `json:"batches"`
	Seen    []string `json:"seen"`
}

// Snapshot returns the state and, in its order, the payloads, which are not to be changed.
func (p *Pool) Snapshot() (State, [][]byte) {
	state := State{Seen: slices.Clone(p.order)}
	payloads := make([][]byte, 0, len(p.batches))
	for _, b := range p.batches {
		state.Batches = append(state.Batches, *b)
		payloads = append(payloads, b.payload)
	}
	return state, payloads
}

// Restore makes the pool what it was at Snapshot.
func (p *Pool) Restore(state State, payloads [][]byte) error {
	if len(payloads) != len(state.Batches) {
		return fmt.Errorf("restore the train batches: %d payloads for %d headers", len(payloads), len(state.Batches))
	}
	p.Clear()
	for _, id := range state.Seen {
		p.note(id)
	}
	for i, b := range state.Batches {
		b.payload = payloads[i]
		p.batches = append(p.batches, &b)
		p.bytes += int64(len(b.payload))
		if b.Given {
			p.given += int64(len(b.payload))
		}
	}
	return nil
}
