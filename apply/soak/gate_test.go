package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// verb is what a call does.
type verb string

const (
	verbGet       verb = "get"
	verbPut       verb = "put"
	verbList      verb = "list"
	verbRemove    verb = "remove"
	verbInventory verb = "inventory"
	verbCreate    verb = "create"
	verbDelete    verb = "delete"
)

// call is a store or provider call that waits to be let through: before it is
// sent, or its reply. Nothing of a client runs between two calls, so letting
// them through one by one fixes the interleaving of all clients.
type call struct {
	client *client
	verb   verb
	key    string
	reply  bool
	begun  standing  // of its client when it was made
	sent   standing  // and when it was let through: what lands later is judged by these
	held   time.Time // not before, as seen by the scheduler
	ended  bool      // its context has ended while its client was suspended
	grant  chan verdict
}

// verdict is what becomes of a call.
type verdict struct {
	err   error // instead of the call
	late  time.Duration
	reply error // instead of its result; the call happens
	slow  bool  // the reply waits to be let through, too
	crash bool  // the client dies once the call has happened
	ended bool  // nothing was let through: the context has ended
}

var (
	errCrashed = errors.New("this client has crashed")
	errRefused = errors.New("503 try again")
	errLost    = errors.New("connection reset by peer")
)

// pass waits until the scheduler lets a call through.
func (c *client) pass(ctx context.Context, k *call) verdict {
	r := c.run
	r.mu.Lock()
	if c.dead {
		r.mu.Unlock()
		return verdict{err: errCrashed}
	}
	if ctx.Err() != nil && !c.suspended {
		r.mu.Unlock()
		return verdict{err: context.Cause(ctx), ended: true}
	}
	k.client, k.grant = c, make(chan verdict, 1)
	r.pending = append(r.pending, k)
	r.mu.Unlock()
	select {
	case v := <-k.grant:
		return v
	case <-ctx.Done():
	}
	r.mu.Lock()
	if c.suspended && !c.dead { // it sees that only when it goes on
		k.ended = true
		r.mu.Unlock()
		return <-k.grant
	}
	r.pending = slices.DeleteFunc(r.pending, func(p *call) bool { return p == k })
	r.mu.Unlock()
	return verdict{err: context.Cause(ctx), ended: true}
}

// gaveUp says whether a call is let through that its client will find ended: its
// process was suspended beyond the call's deadline.
func (c *client) gaveUp(k *call) bool {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	return k.ended
}

// eligible are the calls that may be let through now, in an order that does not
// depend on which goroutine came first.
func (r *run) eligible() []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var calls []*call
	for _, k := range r.pending {
		if !k.client.suspended && !k.held.After(now) {
			calls = append(calls, k)
		}
	}
	slices.SortStableFunc(calls, func(a, b *call) int {
		return cmp.Or(a.client.id-b.client.id, cmp.Compare(a.key, b.key), cmp.Compare(a.verb, b.verb))
	})
	return calls
}

// release lets a call through.
func (r *run) release(k *call, v verdict) {
	r.mu.Lock()
	r.pending = slices.DeleteFunc(r.pending, func(p *call) bool { return p == k })
	r.mu.Unlock()
	k.grant <- v
}

// through carries a call out as the scheduler has it.
func through[T any](ctx context.Context, c *client, k *call, do func() (T, error)) (T, error) {
	var zero T
	k.begun = c.run.oracle.standing(c)
	v := c.pass(ctx, k)
	if k.verb == verbGet && k.key == store.StateKey && (v.err != nil || v.reply != nil) {
		c.blind.Store(true)
	}
	if k.verb == verbGet && k.key == store.LeaseKey && (v.err != nil || v.reply != nil) {
		c.outrun.Store(true)
	}
	if v.err != nil {
		return zero, fmt.Errorf("%s %s: %w", k.verb, k.key, v.err)
	}
	k.sent = c.run.oracle.standing(c)
	if c.gaveUp(k) {
		c.outrun.Store(true)
	}
	if v.late > 0 {
		c.outrun.Store(true)
		c.run.later(v.late, func() { _, _ = do() })
		return zero, fmt.Errorf("%s %s: %w", k.verb, k.key, context.DeadlineExceeded)
	}
	result, err := do()
	if v.crash {
		c.die()
		return zero, errCrashed
	}
	if v.slow {
		k.reply, k.held = true, time.Time{}
		if after := c.pass(ctx, k); after.err != nil {
			return zero, fmt.Errorf("%s %s: %w", k.verb, k.key, after.err)
		}
	}
	if v.reply != nil {
		return zero, fmt.Errorf("%s %s: %w", k.verb, k.key, v.reply)
	}
	return result, err
}

// door is the store as one client has it.
type door struct {
	store.Store
	c *client
}

func (d door) Get(ctx context.Context, key string) (store.Object, error) {
	return through(ctx, d.c, &call{verb: verbGet, key: key}, func() (store.Object, error) {
		if key == store.StateKey {
			d.c.run.oracle.stateRead(d.c)
		}
		return d.Store.Get(context.WithoutCancel(ctx), key)
	})
}

func (d door) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	k := &call{verb: verbPut, key: key}
	return through(ctx, d.c, k, func() (store.Generation, error) {
		g, err := d.Store.Put(context.WithoutCancel(ctx), key, data, want)
		if err == nil {
			d.c.run.oracle.written(k, data)
		}
		return g, err
	})
}

func (d door) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	k := &call{verb: verbList, key: strings.Join(prefixes, " ")}
	return through(ctx, d.c, k, func() ([]store.Attrs, error) {
		return d.Store.List(context.WithoutCancel(ctx), prefixes...)
	})
}

func (d door) Delete(ctx context.Context, key string) error {
	_, err := through(ctx, d.c, &call{verb: verbRemove, key: key}, func() (struct{}, error) {
		d.c.run.oracle.removed(key)
		return struct{}{}, d.Store.Delete(context.WithoutCancel(ctx), key)
	})
	return err
}

func (d door) Upload(context.Context, string, io.Reader) error { return errors.ErrUnsupported }

func (d door) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

// outlet is the provider as one client has it.
type outlet struct{ c *client }

func (o outlet) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	return through(ctx, o.c, &call{verb: verbInventory}, func() (schema.Inventory, error) {
		return o.c.run.cloud.inventory(stack)
	})
}

func (o outlet) Get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	type answer struct {
		status schema.SliceStatus
		found  bool
	}
	a, err := through(ctx, o.c, &call{verb: verbInventory}, func() (answer, error) {
		inv, err := o.c.run.cloud.inventory(spec.Stack)
		for _, st := range inv.Slices {
			if st.Spec.Name == spec.Name {
				return answer{st, true}, err
			}
		}
		return answer{}, err
	})
	return a.status, a.found, err
}

func (o outlet) Create(ctx context.Context, spec schema.SliceSpec) error {
	k := &call{verb: verbCreate, key: spec.Name}
	_, err := through(ctx, o.c, k, func() (struct{}, error) {
		o.c.run.oracle.calling(k)
		return struct{}{}, o.c.run.cloud.create(spec)
	})
	return err
}

func (o outlet) Delete(ctx context.Context, spec schema.SliceSpec) error {
	k := &call{verb: verbDelete, key: spec.Name}
	_, err := through(ctx, o.c, k, func() (struct{}, error) {
		o.c.run.oracle.calling(k)
		return struct{}{}, o.c.run.cloud.delete(spec.Stack, spec.Name)
	})
	return err
}

var (
	_ store.Store        = door{}
	_ providers.Provider = outlet{}
)
