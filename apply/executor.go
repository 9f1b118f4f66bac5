package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// callTimeout bounds one provider or store call, so that a connection that
// hangs cannot hold a slice for ever.
const callTimeout = 2 * time.Minute

// result is what came of an action.
type result struct {
	action   plan.Action
	err      error
	assigned *plan.Assigned // what was written; nil: nothing was assigned
}

// forgotten is the slice whose mailbox was removed, "" if none was.
func (r *result) forgotten() string {
	if r.err != nil || r.action.Verb != plan.ForgetSlice {
		return ""
	}
	return r.action.Slice.Name
}

// errNotBegun says that an action was still queued when the executor closed.
var errNotBegun = errors.New("not begun")

// executor carries actions out, at most as many at a time as it has slots of either
// kind and at most one for a slice. It belongs to one goroutine; only calls run beside it.
type executor struct {
	store     store.Store
	providers map[schema.ProviderName]providers.Provider
	stack     string
	epoch     uint64
	valid     func() error
	// certify puts certificates into assignments; nil: they get none.
	certify   func(ctx context.Context, a *state.Assignment, hosts []state.HostReport) error
	live      Live          // nil: there is none
	slots     chan struct{} // of calls to providers, which may hang
	writes    chan struct{} // of those to the store
	results   chan result
	inFlight  map[string]plan.ActionVerb // by slice
	failed    map[string]failedWrite     // by slice: writes to the store that are to be tried again
	now       func() time.Time
	closed    atomic.Bool   // what is queued is not begun any more
	abandoned chan struct{} // closed once no caller waits for results any more
}

// start queues an action on a slice of hosts, and reports whether it did: not where
// one for its slice is under way, or a write that failed is to be tried later.
func (e *executor) start(ctx context.Context, a plan.Action, hosts []plan.Host) bool {
	if _, busy := e.inFlight[a.Slice.Name]; busy {
		return false
	}
	slots := e.slots
	if writes(a.Verb) {
		if e.now().Before(e.failed[a.Slice.Name].retryAt) {
			return false
		}
		slots = e.writes
	}
	e.inFlight[a.Slice.Name] = a.Verb
	go func() {
		slots <- struct{}{}
		r := result{action: a, err: errNotBegun}
		if !e.closed.Load() {
			r.assigned, r.err = e.do(ctx, a, hosts)
		}
		<-slots
		select {
		case e.results <- r:
		case <-e.abandoned:
		}
	}()
	return true
}

// failedWrite counts the failures in a row of writes about one slice.
type failedWrite struct {
	count   int
	retryAt time.Time
}

// maxWriteBackoff is the longest wait before a write to the store that failed, on
// a full disk for one, is tried again.
const maxWriteBackoff = 5 * time.Second

// writes reports whether an action is a write to the store and nothing else. Failed
// calls to providers wait by what the state says of their slice; these leave no trace there.
func writes(verb plan.ActionVerb) bool { return verb == plan.Assign || verb == plan.ForgetSlice }

// ended takes note of how an action ended. A conflict is no failure: another step
// looks again first.
func (e *executor) ended(a plan.Action, err error) {
	delete(e.inFlight, a.Slice.Name)
	switch {
	case !writes(a.Verb) || errors.Is(err, errNotBegun) || errors.Is(err, store.ErrConflict):
	case err == nil:
		delete(e.failed, a.Slice.Name)
	default:
		count := e.failed[a.Slice.Name].count + 1
		e.failed[a.Slice.Name] = failedWrite{count: count, retryAt: e.now().Add(min(plan.Backoff(count), maxWriteBackoff))}
	}
}

// do carries an action out. It returns what it has assigned, if anything.
func (e *executor) do(ctx context.Context, a plan.Action, hosts []plan.Host) (*plan.Assigned, error) {
	if err := e.valid(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if a.Verb == plan.Assign {
		return e.assign(ctx, a, hosts)
	}
	return nil, e.act(ctx, a)
}

// act carries an action out that assigns nothing.
func (e *executor) act(ctx context.Context, a plan.Action) error {
	switch a.Verb {
	case plan.CreateSlice, plan.RepairSlice:
		p, err := e.provider(a.Slice.Provider)
		if err != nil {
			return err
		}
		return p.Create(ctx, *a.Slice)
	case plan.UpdateSlice:
		p, err := e.provider(a.Slice.Provider)
		if err != nil {
			return err
		}
		updater, ok := providers.AsUpdater(p)
		if !ok {
			return fmt.Errorf("provider %q cannot change slices in place", a.Slice.Provider)
		}
		return updater.Update(ctx, *a.Slice)
	case plan.DeleteSlice:
		p, err := e.provider(a.Slice.Provider)
		if err != nil {
			return err
		}
		spec := *a.Slice
		spec.Stack = e.stack // nothing else is deleted
		return p.Delete(ctx, spec)
	case plan.Assign:
	case plan.ForgetSlice:
		return e.forget(ctx, a.Slice.Name)
	}
	return fmt.Errorf("action %q is not known", a.Verb)
}

func (e *executor) provider(name schema.ProviderName) (providers.Provider, error) {
	p, ok := e.providers[name]
	if !ok {
		return nil, fmt.Errorf("provider %q is not configured here", name)
	}
	return p, nil
}

func (e *executor) assign(ctx context.Context, a plan.Action, hosts []plan.Host) (*plan.Assigned, error) {
	out := *a.Assignment
	out.Epoch = e.epoch
	if e.certify != nil && out.Run != nil {
		reports := make([]state.HostReport, len(hosts))
		for i := range hosts {
			reports[i] = hosts[i].HostReport
		}
		if err := e.certify(ctx, &out, reports); err != nil {
			return nil, fmt.Errorf("certify the hosts of %s: %w", out.Slice, err)
		}
	}
	data, err := store.Encode(out)
	if err != nil {
		return nil, fmt.Errorf("encode assignment: %w", err)
	}
	object, err := e.store.Put(ctx, store.AssignKey(out.Slice), data, a.Object)
	if err != nil {
		return nil, fmt.Errorf("write assignment of %s: %w", out.Slice, err)
	}
	if e.live == nil {
		return nil, nil
	}
	e.live.Assigned(out.Slice, object, data)
	if out, err = store.DecodeAssignment(data); err != nil { // as it is read from the store
		return nil, fmt.Errorf("read back what the hosts of %s are to run: %w", out.Slice, err)
	}
	return &plan.Assigned{Assignment: out, Object: object}, nil
}

// deletesAtOnce is how many objects of one slice are removed at a time.
const deletesAtOnce = 8

// forget removes the mailbox of a slice that is gone: its agents are, too.
func (e *executor) forget(ctx context.Context, slice string) error {
	// Each prefix by itself: between them are the objects of all other slices, and a bucket
	// answers one list of both with a page of these.
	var keys [2][]store.Attrs
	looking, listing := errgroup.WithContext(ctx)
	for i, prefix := range [2]string{store.HostsOf(slice), store.BootOf(slice)} {
		looking.Go(func() (err error) {
			keys[i], err = e.store.List(listing, prefix)
			return err
		})
	}
	if err := looking.Wait(); err != nil {
		return err
	}
	group, deleting := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	for _, k := range slices.Concat(keys[0], keys[1]) {
		group.Go(func() error { return e.store.Delete(deleting, k.Key) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return e.store.Delete(ctx, store.AssignKey(slice))
}
