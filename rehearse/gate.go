package rehearse

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// gate is the provider as the stepper has it. The calls of one step begin
// together and in no order; the gate holds them until all are there and lets
// them through one by one, so that the same seed makes the same rehearsal.
type gate struct {
	providers.Provider
	watch gateWatch
	now   func() time.Time

	// Of the last list; a step asks for it while nothing else goes on.
	inventory schema.Inventory
	listErr   error
	listedAt  time.Time
	listed    uint64 // the news by then
	current   bool   // nothing has happened since

	reads  map[string]reading // by slice
	doubts map[string]*doubt  // by slice, of the last plan
	open   bool               // nothing confirms or refutes one of them yet

	mu       sync.Mutex
	waiting  []*call
	arrived  chan struct{}        // told of each call that comes to wait
	rejected map[string]*rejected // slices whose last Create was rejected, by name
	owners   map[schema.Address]*rejected
}

// rejected is what the last rejection said.
type rejected struct {
	cause    Cause
	zone     string
	accepted time.Time // when the creation after it was
}

// gateWatch sees deletions before they are asked for, and what creations said.
type gateWatch interface {
	created(spec *schema.SliceSpec, err error)
	deleting(name string)
}

// call is one that waits at the gate.
type call struct {
	name  string
	enter chan struct{}
	left  chan error
}

func newGate(p providers.Provider, watch gateWatch, now func() time.Time) *gate {
	return &gate{
		Provider: p, watch: watch, now: now,
		arrived: make(chan struct{}, 1), reads: map[string]reading{}, rejected: map[string]*rejected{}, owners: map[schema.Address]*rejected{},
	}
}

var (
	_ providers.Provider = (*gate)(nil)
	_ providers.Updater  = (*gate)(nil)
	_ providers.Pacer    = (*gate)(nil)
)

// pass lets n calls through, by name, once all of them are waiting. After each
// that failed it calls failed, so that failures are heard of in that order, too.
func (g *gate) pass(ctx context.Context, n int, failed func()) error {
	for {
		g.mu.Lock()
		waiting := g.waiting
		if len(waiting) == n {
			g.waiting = nil
			g.mu.Unlock()
			return through(ctx, waiting, failed)
		}
		g.mu.Unlock()
		select {
		case <-g.arrived:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func through(ctx context.Context, waiting []*call, failed func()) error {
	slices.SortFunc(waiting, func(a, b *call) int { return strings.Compare(a.name, b.name) })
	for _, c := range waiting {
		close(c.enter)
		select {
		case err := <-c.left:
			if err != nil {
				failed()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// turn carries a call out when it is its turn.
func (g *gate) turn(ctx context.Context, name string, do func() error) error {
	c := &call{name: name, enter: make(chan struct{}), left: make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	select {
	case <-c.enter:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := do()
	c.left <- err
	return err
}

// listEvery is how often Google Cloud is listed.
const listEvery = 5 * time.Second

// Pace has a step take the last list where that is what a list would be now, and else
// keep the one that it has: when the next one is made, list decides.
func (g *gate) Pace() time.Duration {
	if g.current {
		return 0
	}
	return time.Hour
}

// list lists what the next step will ask for, so that it gets it at once whatever the
// machine has to do besides: a step does not wait for long. news counts what may be listed
// otherwise than before; without any, the last list stands, unless it is in doubt.
func (g *gate) list(ctx context.Context, stack string, news uint64) {
	now := g.now()
	first := g.listedAt.IsZero() || g.listErr != nil
	if due := first || !now.Before(listedNext(g.listedAt)); due && (first || g.open || news != g.listed) {
		g.inventory, g.listErr = g.Provider.Inventory(ctx, stack)
		g.listedAt, g.listed = now, news
	}
	g.current = news == g.listed
}

// listedNext is when there may be another list after one.
func listedNext(last time.Time) time.Time { return last.Truncate(listEvery).Add(listEvery) }

// Inventory is the last list.
func (g *gate) Inventory(context.Context, string) (schema.Inventory, error) {
	return g.inventory, g.listErr
}

// read reads the slices directly that the next step will ask for, for the same reason: of
// those in doubt the ones that are due.
func (g *gate) read(ctx context.Context) {
	now := g.now()
	for _, name := range slices.Sorted(maps.Keys(g.doubts)) {
		d := g.doubts[name]
		if now.Before(d.due) {
			continue
		}
		r := reading{at: now}
		r.status, r.found, r.err = g.Provider.Get(ctx, d.Slice)
		g.reads[name] = r
		if providers.KindOf(r.err) == schema.ErrorRate && r.err != nil {
			return
		}
		_, again := d.Kind.Pace()
		d.due = now.Add(again)
	}
}

// doubt is a slice that is read directly, and when it is read next.
type doubt struct {
	plan.Doubt
	due time.Time
}

// doubt takes over which slices a plan doubts. It reports whether they are others than
// before, or for other reasons: what was read of them then counts no more.
func (g *gate) doubt(all []plan.Doubt) (changed bool) {
	were := g.doubts
	changed = len(were) != len(all)
	g.doubts, g.open = make(map[string]*doubt, len(all)), false
	for _, d := range all {
		g.open = g.open || d.Open
		was := were[d.Slice.Name]
		if was == nil || was.Kind != d.Kind || was.Slice != d.Slice {
			changed = true
			first, _ := d.Kind.Pace()
			was = &doubt{due: g.now().Add(first)}
		}
		changed = changed || was.Open != d.Open
		was.Doubt = d
		g.doubts[d.Slice.Name] = was
	}
	return changed
}

// nextRead is when a slice in doubt is read next, false if none is.
func (g *gate) nextRead() (time.Time, bool) {
	var next time.Time
	for _, d := range g.doubts {
		if next.IsZero() || d.due.Before(next) {
			next = d.due
		}
	}
	return next, !next.IsZero()
}

// reading is what a direct read of a slice said.
type reading struct {
	at     time.Time
	status schema.SliceStatus
	found  bool
	err    error
}

// errNotRead reports that the gate has not read a slice, which is none of the provider's
// errors: it is asked for the next time.
var errNotRead = &providers.Error{Kind: schema.ErrorRate, Op: "read slice", Err: errors.New("its turn has not come")}

// Get is the last reading of a slice, once.
func (g *gate) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	r, read := g.reads[spec.Name]
	if !read || r.at.Before(g.now()) {
		return schema.SliceStatus{}, false, errNotRead
	}
	return r.status, r.found, r.err
}

// Create asks for a slice when it is its turn.
func (g *gate) Create(ctx context.Context, spec schema.SliceSpec) error {
	return g.turn(ctx, spec.Name, func() error {
		err := g.Provider.Create(ctx, spec)
		g.watch.created(&spec, err)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.reject(&spec, err)
		return err
	})
}

// reject notes what a creation said. One that was accepted says nothing of what
// will come of it: the next may be rejected again.
func (g *gate) reject(spec *schema.SliceSpec, err error) {
	was := g.rejected[spec.Name]
	switch {
	case err != nil:
		r := &rejected{cause: causeOf(providers.KindOf(err)), zone: spec.Zone}
		if r.cause == CauseOther || r.cause == CauseRate || r.cause == CausePreempted {
			r.zone = "" // which has nothing to do with it
		}
		g.rejected[spec.Name], g.owners[spec.Owner] = r, r
	case was == nil:
	case was.cause == CauseRate || was.cause == CauseOther:
		delete(g.rejected, spec.Name)
		delete(g.owners, spec.Owner)
	case was.accepted.IsZero():
		was.accepted = g.now()
	}
}

// placed notes that a slice got machines, and returns when that creation was
// accepted; zero if it was never rejected.
func (g *gate) placed(spec *schema.SliceSpec) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.rejected[spec.Name]
	if r == nil {
		return time.Time{}
	}
	delete(g.rejected, spec.Name)
	delete(g.owners, spec.Owner)
	return r.accepted
}

// Delete asks for a slice to go when it is its turn.
func (g *gate) Delete(ctx context.Context, spec schema.SliceSpec) error {
	return g.turn(ctx, spec.Name, func() error {
		g.watch.deleting(spec.Name)
		return g.Provider.Delete(ctx, spec)
	})
}

// Update changes a slice in place when it is its turn.
func (g *gate) Update(ctx context.Context, spec schema.SliceSpec) error {
	return g.turn(ctx, spec.Name, func() error {
		u, ok := providers.AsUpdater(g.Provider)
		if !ok {
			return errors.ErrUnsupported
		}
		return u.Update(ctx, spec)
	})
}

// rejection is the cause for which a slice was rejected last, and where; false if
// it was not.
func (g *gate) rejection(name string) (Cause, string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.rejected[name]; r != nil {
		return r.cause, r.zone, true
	}
	return "", "", false
}

// rejectionOf is that of the slice of an owner that was rejected last.
func (g *gate) rejectionOf(owner schema.Address) (Cause, string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.owners[owner]; r != nil {
		return r.cause, r.zone, true
	}
	return "", "", false
}

// causeOf is what a job waits for whose slice was rejected.
func causeOf(kind schema.ErrorKind) Cause {
	switch kind {
	case schema.ErrorCapacity:
		return CauseCapacity
	case schema.ErrorQuota:
		return CauseQuota
	case schema.ErrorRate:
		return CauseRate
	case schema.ErrorReservation:
		return CauseReservation
	case schema.ErrorPreempted:
		return CausePreempted
	case schema.ErrorConflict, schema.ErrorInvalid, schema.ErrorPermission, schema.ErrorUnavailable:
	}
	return CauseOther
}
