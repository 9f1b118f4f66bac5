package trajectory

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/rl"
)

// given is a batch that a consumer has, or had, and has not acknowledged.
type given struct {
	id         string
	tag        rl.ModelTag
	consumer   string // "": its consumer was released
	samples    []*sample
	oldest     *int64    // version of weights that a sample is of; nil: none is known
	partial    []int64   // groups in it that were incomplete
	since      time.Time // the unlock, or the batch before
	rollout    time.Duration
	isNotified bool
}

// Query is what Take is asked for. Consumer is who acknowledges the batch; without one it counts as
// acknowledged at once.
type Query struct {
	BatchSize int         `json:"batch_size,omitempty"` // 0: the configured one
	Tag       rl.ModelTag `json:"tag,omitempty"`        // "": any
	Consumer  string      `json:"consumer,omitempty"`
	Quiet     bool        `json:"quiet,omitempty"`    // the loader is drained and nothing is rolled out
	Finished  bool        `json:"finished,omitempty"` // and there are no more data
	Now       time.Time   `json:"now"`
}

// Answer is what Take found. Changed is whether the pool is another one now.
type Answer struct {
	Batch    *rl.Batch
	Oldest   *int64 // version of weights that one of its trajectories is of; nil: none is known
	Notified bool   // NoteNotified was called for it
	Changed  bool
}

// Take gives a batch: one that the consumer has already, one whose consumer was released, or a new one.
func (p *Pool) Take(q Query) (Answer, error) {
	if q.Consumer != "" {
		if b, changed := p.again(q); b != nil {
			return Answer{Batch: b.batch(), Oldest: b.oldest, Notified: b.isNotified, Changed: changed}, nil
		}
	}
	q.Quiet = q.Quiet && len(p.evicted) == 0 // else the loader gets more tasks
	tags := p.tags
	if q.Tag != "" {
		tags = []rl.ModelTag{q.Tag}
	}
	changed := false
	for _, tag := range tags {
		s := p.stores[tag]
		if s == nil || p.holdsBack(tag) {
			continue
		}
		if q.Quiet && len(s.open) > 0 {
			p.Flush(tag, p.cfg.Policy)
			changed = true
		}
		n := p.ready(s, q)
		if n == 0 && q.Quiet && q.Finished && p.cfg.Policy == rl.Drop && len(s.finished) > 0 {
			p.forget(s.pop(len(s.finished))) // they can no longer fill a batch
			changed = true
		}
		if n == 0 {
			continue
		}
		b, err := p.give(tag, s, n, q)
		if err != nil {
			return Answer{Changed: changed}, err
		}
		return Answer{Batch: b.batch(), Oldest: b.oldest, Changed: true}, nil
	}
	return Answer{Changed: changed}, nil
}

// Reaches reports whether a batch of a query may be had without the loader being quiet.
func (p *Pool) Reaches(q Query) bool {
	if p.cfg.Ready != rl.BatchSizeReached {
		return false
	}
	for _, tag := range p.tags {
		if s := p.stores[tag]; (q.Tag == "" || q.Tag == tag) && !p.holdsBack(tag) && p.ready(s, q) > 0 {
			return true
		}
	}
	return false
}

// again is the oldest batch that the consumer has, or that has none.
func (p *Pool) again(q Query) (b *given, changed bool) {
	for _, owner := range []string{q.Consumer, ""} {
		for _, b := range p.batches {
			if b.consumer == owner && (q.Tag == "" || q.Tag == b.tag) {
				b.consumer = q.Consumer
				return b, owner == ""
			}
		}
	}
	return nil, false
}

// ready is how many samples are to be given now.
func (p *Pool) ready(s *store, q Query) int {
	have, want := len(s.finished), q.BatchSize
	if want <= 0 {
		want = p.cfg.BatchSize
	}
	last := q.Quiet && q.Finished && p.cfg.Policy == rl.Flush
	switch p.cfg.Ready {
	case rl.LoadedBatchFinished:
		if q.Quiet {
			return have
		}
	case rl.BatchSizeReached:
		if have >= want {
			return want
		}
		if last {
			return have
		}
	case rl.BatchSizeReachedAndLoadedBatchFinished:
		if q.Quiet && have >= want {
			return want
		}
		if last {
			return have
		}
	}
	return 0
}

// give makes a batch of the first n samples.
func (p *Pool) give(tag rl.ModelTag, s *store, n int, q Query) (*given, error) {
	if p.cfg.Ready == rl.LoadedBatchFinished {
		inDataOrder(s.finished)
	}
	if err := sameFields(tag, s.finished[:n]); err != nil {
		return nil, err
	}
	samples := s.pop(n)
	b := &given{
		id:  fmt.Sprintf("%s/%d/%d", p.cfg.Name, p.epoch, p.nextBatch),
		tag: tag, consumer: q.Consumer, samples: samples, oldest: oldestOf(samples), partial: s.settle(samples), since: p.since[tag],
	}
	p.nextBatch++
	if !b.since.IsZero() {
		b.rollout = q.Now.Sub(b.since)
	}
	p.since[tag] = q.Now
	p.forgetUnlessConsumed(b)
	return b, nil
}

func (p *Pool) forgetUnlessConsumed(b *given) {
	if b.consumer == "" {
		p.forget(b.samples)
		return
	}
	p.batches = append(p.batches, b)
}

// settle returns the groups among samples that were incomplete, sorted, and forgets that they were.
func (s *store) settle(samples []*sample) []int64 {
	if len(s.partial) == 0 {
		return nil
	}
	groups := map[int64]bool{}
	for _, x := range samples {
		if s.partial[x.group] {
			groups[x.group] = true
		}
	}
	for _, x := range s.finished { // whose rest comes in a later batch
		delete(groups, x.group)
	}
	for number := range groups {
		delete(s.partial, number)
	}
	return slices.Sorted(maps.Keys(groups))
}

// batch is what goes to the consumer.
func (b *given) batch() *rl.Batch {
	out := &rl.Batch{
		ID: b.id, Payloads: make([][]byte, len(b.samples)), Headers: make([]rl.Header, len(b.samples)),
		Metadata: map[string]any{
			"batch_size": len(b.samples), "model_tag": b.tag, "rollout_time": b.rollout.Seconds(), "incomplete_groups": len(b.partial),
		},
	}
	for i, x := range b.samples {
		out.Payloads[i], out.Headers[i] = x.payload, x.header
	}
	if t := out.Headers[0].Temperature; t != nil && !slices.ContainsFunc(out.Headers, func(h rl.Header) bool {
		return h.Temperature == nil || *h.Temperature != *t
	}) {
		out.Metadata["temperature"] = *t
	}
	return out
}

// NoteNotified records that the weight sync controller knows of a batch.
func (p *Pool) NoteNotified(id string) {
	for _, b := range p.batches {
		if b.id == id {
			b.isNotified = true
		}
	}
}

// Has reports whether a batch is not acknowledged.
func (p *Pool) Has(id string) bool {
	return slices.ContainsFunc(p.batches, func(b *given) bool { return b.id == id })
}

// Ack forgets a batch, and reports whether there was one of the ID.
func (p *Pool) Ack(id string) bool {
	i := slices.IndexFunc(p.batches, func(b *given) bool { return b.id == id })
	if i < 0 {
		return false
	}
	p.forget(p.batches[i].samples)
	p.batches = slices.Delete(p.batches, i, i+1)
	return true
}

// Release has the batches of a consumer given to the next that asks, and returns how many there are.
func (p *Pool) Release(consumer string) int {
	n := 0
	for _, b := range p.batches {
		if consumer != "" && b.consumer == consumer {
			b.consumer = ""
			n++
		}
	}
	return n
}
