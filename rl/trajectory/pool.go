package trajectory

import (
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/rl"
)

// Config is a pool's.
type Config struct {
	Name      string // begins the IDs of its batches, unique in the run
	KeyList   []string
	GroupSize int // 0: 1; without keys it is 1
	BatchSize int
	Ready     rl.Readiness        // "": loaded_batch_finished
	Policy    rl.IncompletePolicy // "": flush
	MaxBytes  int64               // of all trajectories that it holds; 0: 1 GiB
	// Remember is how many accepted tasks are known as such; 0: 262,144. A task's trajectory comes twice only
	// while a lease of the task is open, so that old ones may be forgotten.
	Remember int
}

// The defaults of Config.
const (
	DefaultMaxBytes = 1 << 30
	DefaultRemember = 1 << 18
)

func (c Config) complete() (Config, error) {
	if c.GroupSize == 0 || len(c.KeyList) == 0 {
		c.GroupSize = 1
	}
	if c.Ready == "" {
		c.Ready = rl.LoadedBatchFinished
	}
	if c.Policy == "" {
		c.Policy = rl.Flush
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.Remember == 0 {
		c.Remember = DefaultRemember
	}
	switch {
	case c.GroupSize < 0 || c.MaxBytes < 0 || c.Remember < 0 || c.BatchSize < 0:
		return c, fmt.Errorf("group_size %d, batch_size %d, max_bytes %d: none may be negative", c.GroupSize, c.BatchSize, c.MaxBytes)
	case c.BatchSize == 0 && c.Ready != rl.LoadedBatchFinished:
		return c, fmt.Errorf("check_batch_ready_function %s needs a batch_size: set it to 1 or more", c.Ready)
	}
	return c, nil
}

// Pool holds the trajectories of all models until their batches are acknowledged.
type Pool struct {
	cfg       Config
	epoch     int
	nextBatch int64
	nextGroup int64
	evictions int64 // tasks so far that are to be rolled out again
	bytes     int64
	stores    map[rl.ModelTag]*store
	tags      []rl.ModelTag // of stores, in the order in which they were made
	locked    map[rl.ModelTag]bool
	floors    map[rl.ModelTag]int64     // versions of weights before which trajectories are rolled out again
	evicted   []Eviction                // that the loader does not know of
	since     map[rl.ModelTag]time.Time // the last unlock or batch
	batches   []*given                  // not acknowledged, in the order in which they were given
	accepted  *accepted
}

// New returns an empty pool.
func New(cfg Config) (*Pool, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("trajectory pool: %w", err)
	}
	p := &Pool{cfg: cfg}
	p.clear()
	return p, nil
}

func (p *Pool) clear() {
	p.bytes, p.tags, p.batches, p.evicted = 0, nil, nil, nil
	p.stores = map[rl.ModelTag]*store{}
	p.locked = map[rl.ModelTag]bool{}
	p.floors = map[rl.ModelTag]int64{}
	p.since = map[rl.ModelTag]time.Time{}
	p.accepted = newAccepted(p.cfg.Remember)
}

// Verdict is what becomes of a trajectory. Its zero value is one to be stored.
type Verdict struct {
	Outcome rl.Outcome // "": it is to be stored or, if Wait, to come again
	Wait    bool       // until the pool has more room
	Reason  string     // of Fail and ReRollout
}

// FullError is a limit on memory in which no batch fits, so that waiting would not end.
type FullError struct {
	Limit, Held, Size int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("trajectory_pool: max_bytes is %d: %d bytes are held and none can be given as a batch, so a trajectory of %d bytes never fits; raise max_bytes or lower the batch size",
		e.Limit, e.Held, e.Size)
}

// Admit decides about a trajectory and changes nothing.
func (p *Pool) Admit(h rl.Header, payload []byte) (Verdict, error) {
	tag := rl.TagOf(h.ModelTag)
	if h.Epoch < p.epoch {
		return Verdict{Outcome: rl.Fail, Reason: fmt.Sprintf("task %q was leased in epoch %d, before the run went back to its checkpoint (epoch %d)", h.TaskID, h.Epoch, p.epoch)}, nil
	}
	if p.accepted.has(tag, h, payload) {
		return Verdict{Outcome: rl.Success}, nil
	}
	if p.locked[tag] {
		return Verdict{Outcome: rl.ReRollout, Reason: fmt.Sprintf("weights of model %q are being synchronized", tag)}, nil
	}
	if isBefore(h, p.floors[tag]) {
		return Verdict{Outcome: rl.ReRollout, Reason: fmt.Sprintf("it is of version %d of model %q, and training takes version %d and later ones", *h.Version, tag, p.floors[tag])}, nil
	}
	if err := check(h); err != nil {
		return Verdict{Outcome: rl.Fail, Reason: err.Error()}, nil
	}
	if _, err := groupKey(p.cfg.KeyList, h.Keys); err != nil {
		return Verdict{Outcome: rl.Fail, Reason: err.Error()}, nil
	}
	size := sizeOf(h, payload)
	if p.bytes+size <= p.cfg.MaxBytes {
		return Verdict{}, nil
	}
	if size > p.cfg.MaxBytes || len(p.batches) == 0 && !p.anyReached() {
		return Verdict{}, &FullError{Limit: p.cfg.MaxBytes, Held: p.bytes, Size: size}
	}
	return Verdict{Wait: true}, nil
}

// anyReached reports whether a batch can be had without anything more being put.
func (p *Pool) anyReached() bool {
	if p.cfg.Ready != rl.BatchSizeReached {
		return false // the task of the trajectory that waits has its lease, so that the loader is not quiet
	}
	for _, s := range p.stores {
		if len(s.finished) >= p.cfg.BatchSize {
			return true
		}
	}
	return false
}

// Store stores a trajectory that Admit has admitted.
func (p *Pool) Store(h rl.Header, payload []byte, now time.Time) {
	tag := rl.TagOf(h.ModelTag)
	h.ModelTag = tag
	s := p.store(tag)
	if p.since[tag].IsZero() {
		p.since[tag] = now
	}
	key, err := groupKey(p.cfg.KeyList, h.Keys)
	if err != nil {
		return // Admit rejects it
	}
	p.accepted.add(tag, h, payload)
	x := &sample{header: h, payload: payload, size: sizeOf(h, payload)}
	p.bytes += x.size
	p.join(s, key, x)
}

// join adds a sample to the open group of a key, which is released once it is complete.
func (p *Pool) join(s *store, key string, x *sample) {
	g := s.open[key]
	if g == nil {
		g = &group{number: p.nextGroup}
		p.nextGroup++
		s.open[key] = g
	}
	x.group = g.number
	g.samples = append(g.samples, x)
	if len(g.samples) >= p.cfg.GroupSize {
		delete(s.open, key)
		s.finished = append(s.finished, g.samples...)
	}
}

func (p *Pool) store(tag rl.ModelTag) *store {
	s := p.stores[tag]
	if s == nil {
		s = &store{open: map[string]*group{}, partial: map[int64]bool{}}
		p.stores[tag] = s
		p.tags = append(p.tags, tag)
	}
	return s
}

// Lock has trajectories of a model rolled out again until Unlock.
func (p *Pool) Lock(tag rl.ModelTag) { p.locked[rl.TagOf(tag)] = true }

// Unlock ends Lock. Trajectories of versions of weights before floor are rolled out again from now on, see SetFloor.
func (p *Pool) Unlock(tag rl.ModelTag, floor int64, now time.Time) {
	tag = rl.TagOf(tag)
	delete(p.locked, tag)
	p.since[tag] = now
	p.SetFloor(tag, floor)
}

// Flush releases a model's incomplete groups as they are, or drops them, and returns how many there were.
func (p *Pool) Flush(tag rl.ModelTag, policy rl.IncompletePolicy) int {
	s := p.stores[rl.TagOf(tag)]
	if s == nil {
		return 0
	}
	groups := s.incomplete()
	for _, g := range groups {
		switch policy {
		case rl.Flush:
			s.finished = append(s.finished, g.samples...)
			s.partial[g.number] = true
		case rl.Drop:
			p.forget(g.samples)
		}
	}
	clear(s.open)
	return len(groups)
}

func (p *Pool) forget(samples []*sample) {
	for _, x := range samples {
		p.bytes -= x.size
	}
}

// Rewind empties the pool as the run goes back to a checkpoint; trajectories of an earlier epoch are
// rejected from now on.
func (p *Pool) Rewind(epoch int) {
	p.clear()
	p.epoch = epoch
}

// IsEmpty reports whether the pool has nothing of a model, or of any with "": no samples, no incomplete
// groups, no batch that is not acknowledged, no task that the loader is to give again.
func (p *Pool) IsEmpty(tag rl.ModelTag) bool {
	status := p.Status(tag)
	return status.Samples == 0 && status.Unacked == 0 && status.Evicted == 0
}

// Status is how much of a model a pool has.
type Status struct {
	Samples    int   `json:"samples"`    // those of incomplete groups among them
	Incomplete int   `json:"incomplete"` // groups
	Unacked    int   `json:"unacked"`    // batches
	Evicted    int   `json:"evicted"`    // tasks that the loader is to give again, and does not know of
	Bytes      int64 `json:"bytes"`      // of the pool, with all models
	Locked     bool  `json:"locked"`
}

// Status is of a model, or of all with "".
func (p *Pool) Status(tag rl.ModelTag) Status {
	out := Status{Bytes: p.bytes}
	for _, t := range p.tags {
		if tag == "" || t == tag {
			s := p.stores[t]
			out.Samples += s.count()
			out.Incomplete += len(s.open)
		}
	}
	for t := range p.locked {
		out.Locked = out.Locked || tag == "" || t == tag
	}
	for _, b := range p.batches {
		if tag == "" || b.tag == tag {
			out.Unacked++
		}
	}
	for _, e := range p.evicted {
		if tag == "" || e.Tag == tag {
			out.Evicted++
		}
	}
	return out
}

// ModelTags are the models of which anything was stored, in that order.
func (p *Pool) ModelTags() []rl.ModelTag { return slices.Clone(p.tags) }

// Bytes is how much memory the trajectories take.
func (p *Pool) Bytes() int64 { return p.bytes }
