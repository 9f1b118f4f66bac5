package apply

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// readsAtOnce is how many slices are read at a time: a cloud may take a second for each.
const readsAtOnce = 16

// confirmer reads the slices of one provider directly that the last plan doubted:
// each by itself, in the background, at the pace that the provider allows.
type confirmer struct {
	provider providers.Provider
	now      func() time.Time
	running  chan struct{} // closed at the end of the reads that are under way; nil: none are

	mu     sync.Mutex
	doubts map[string]*doubt // by slice
}

// doubt is what is known of a slice that the last plan doubted.
type doubt struct {
	spec   schema.SliceSpec
	kind   plan.DoubtKind
	list   int       // the number of the list that first spoke against it
	since  time.Time // when that was begun
	dueAt  time.Time // when it is to be read
	answer plan.Answer
	readAt time.Time // when the read was begun that said so
	status schema.SliceStatus
}

// want takes over which slices the last plan doubted, given the number of the list
// that it saw and when that was begun.
func (c *confirmer) want(doubts []plan.Doubt, list int, begun time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := make(map[string]*doubt, len(doubts))
	for i := range doubts {
		spec, kind := doubts[i].Slice, doubts[i].Kind
		d := c.doubts[spec.Name]
		if d == nil || d.spec != spec {
			d = &doubt{spec: spec, list: list, since: begun}
		}
		if d.kind != "" && (!d.kind.IsAgainst() || !kind.IsAgainst()) && d.kind != kind {
			d.list, d.since = list, begun
		}
		if d.kind != kind {
			d.turn(kind, c.now())
		}
		wanted[spec.Name] = d
	}
	c.doubts = wanted
}

// turn has a slice be doubted for another reason: it is read anew, and what is to wait
// for that goes by no answer of before.
func (d *doubt) turn(kind plan.DoubtKind, now time.Time) {
	first, _ := kind.Pace()
	d.kind, d.dueAt = kind, now.Add(first)
	if first > 0 {
		d.answer, d.status = snapshot.AnswerNone, schema.SliceStatus{}
	}
}

// begin starts to read what is due, unless that is under way.
func (c *confirmer) begin(ctx context.Context) {
	if c.running != nil || len(c.due()) == 0 {
		return
	}
	running := make(chan struct{})
	c.running = running
	go func() {
		defer close(running)
		due := c.due()
		var next atomic.Int64
		var readers sync.WaitGroup
		for range min(readsAtOnce, len(due)) {
			readers.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(due) && c.read(ctx, due[i]); i = int(next.Add(1)) - 1 {
				}
			})
		}
		readers.Wait()
	}()
}

// due are the slices to read now: before others those against which something is said,
// and of each those first whose reading is overdue longest.
func (c *confirmer) due() []schema.SliceSpec {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []*doubt
	for _, d := range c.doubts {
		if !c.now().Before(d.dueAt) {
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *doubt) int {
		return cmp.Or(a.rank()-b.rank(), a.dueAt.Compare(b.dueAt), cmp.Compare(a.spec.Name, b.spec.Name))
	})
	specs := make([]schema.SliceSpec, len(due))
	for i, d := range due {
		specs[i] = d.spec
	}
	return specs
}

func (d *doubt) rank() int {
	if d.kind.IsAgainst() {
		return 0
	}
	return 1
}

// read reads one slice and reports whether to go on: not where the provider says that
// it was asked too often.
func (c *confirmer) read(ctx context.Context, spec schema.SliceSpec) bool {
	if ctx.Err() != nil || !c.wants(spec) {
		return ctx.Err() == nil
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := c.now()
	status, found, err := c.provider.Get(bounded, spec)
	if err != nil && providers.KindOf(err) == schema.ErrorRate {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.doubts[spec.Name]
	if d == nil || d.spec != spec {
		return true
	}
	_, again := d.kind.Pace()
	d.dueAt, d.readAt = c.now().Add(again), began
	switch {
	case err != nil: // the answer of before is too old by now
		d.answer, d.status = snapshot.AnswerNone, schema.SliceStatus{}
	case found:
		d.answer, d.status = snapshot.AnswerFound, status
	default:
		d.answer, d.status = snapshot.AnswerGone, schema.SliceStatus{}
	}
	return true
}

func (c *confirmer) wants(spec schema.SliceSpec) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.doubts[spec.Name]
	return d != nil && d.spec == spec
}

// await waits for the reads that are under way as long as there is patience.
func (c *confirmer) await(ctx context.Context, patience patience) {
	if c.running == nil {
		return
	}
	select {
	case <-c.running:
		c.running = nil
	case <-patience.over:
	case <-ctx.Done():
	}
}

// report adds what is known of the slices in doubt, given the number of the last list.
func (c *confirmer) report(to map[string]plan.Confirmation, list int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, d := range c.doubts {
		to[name] = plan.Confirmation{Since: d.since, Lists: list - d.list + 1, Answer: d.answer, ReadAt: d.readAt, Status: d.status}
	}
}
