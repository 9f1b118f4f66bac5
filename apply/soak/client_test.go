package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// role is what a client does.
type role string

const (
	roleApply role = "apply" // as `fray apply`: one change after another
	roleGuard role = "guard" // as `fray watch`, with a clock of its own
	roleWatch role = "watch" // controller.Run itself
	roleBreak role = "break" // a user who breaks the lease once
)

// client is one process, from its start to its end or crash.
type client struct {
	run  *run
	id   int // of the machine; a restarted process has the same
	role role
	life int // how many processes the machine had before

	ctx    context.Context
	cancel context.CancelFunc
	dice   dice
	offset time.Duration // of its clock
	drift  float64
	bound  bool // its steps end with its lease, as a watch's do and an apply's do not

	// outrun says that a write of its own landed after it had given that up, or
	// that it could not release its lease or look what became of it, so that it
	// may rightly find its own doing in the way.
	outrun atomic.Bool
	// blind says that it could not look what became of its last write.
	blind atomic.Bool

	change  *change // being made; its user repeats it after a crash
	changes int

	// Guarded by run.mu.
	dead      bool
	suspended bool
	resumes   time.Time
	cut       time.Time // off from store and provider until then
}

func (r *run) start(id int, as role, before *client) *client {
	c := &client{run: r, id: id, role: as}
	if before != nil {
		c.life, c.change, c.changes = before.life+1, before.change, before.changes
		c.offset, c.drift = before.offset, before.drift
	}
	c.dice = roll(r.seed, hash(fmt.Sprint("client", id, c.life)))
	if before == nil && as != roleWatch && r.conditions.skew > 0 {
		c.offset = c.dice.between(-r.conditions.skew, r.conditions.skew)
		c.drift = r.conditions.drift * (float64(c.dice.n(201)-100) / 100)
	}
	c.bound = as != roleApply || c.dice.chance(500)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	r.running.Go(c.main)
	return c
}

// clock is this machine's.
func (c *client) clock() time.Time {
	now := time.Now()
	return now.Add(c.offset + time.Duration(c.drift*float64(now.Sub(c.run.began))))
}

func (c *client) String() string { return fmt.Sprintf("%s%d.%d", c.role, c.id, c.life) }

func (c *client) main() {
	switch c.role {
	case roleWatch:
		err := controller.Run(c.ctx, controller.Config{
			Store: c.door(), Providers: c.providers(), Command: c.String(), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil && c.ctx.Err() == nil {
			c.run.fail("watch ended", "%s: %v", c, err)
		}
	case roleApply:
		for c.ctx.Err() == nil && !c.run.stopping() {
			c.pause(c.dice.between(0, 20*time.Second))
			c.apply()
		}
	case roleBreak:
		seen, err := store.ReadLease(c.ctx, c.door())
		if err == nil {
			_, err = store.Break(c.ctx, c.door(), store.LeaseConfig{Command: c.String(), Now: c.clock}, seen)
		}
		if err != nil {
			c.run.tally.add("break failed")
		}
	case roleGuard:
		for c.ctx.Err() == nil {
			c.guard()
			c.pause(c.dice.between(300*time.Millisecond, time.Second))
		}
	}
}

func (c *client) door() store.Store { return door{Store: c.run.objects, c: c} }

func (c *client) providers() map[schema.ProviderName]providers.Provider {
	return map[schema.ProviderName]providers.Provider{schema.ProviderLocal: outlet{c}}
}

func (c *client) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
	case <-timer.C:
	}
}

// die ends the process as SIGKILL does: nothing that it still does has any effect.
func (c *client) die() {
	r := c.run
	r.mu.Lock()
	c.dead = true
	var waiting []*call
	for _, k := range r.pending {
		if k.client == c {
			waiting = append(waiting, k)
		}
	}
	r.mu.Unlock()
	for _, k := range waiting {
		r.release(k, verdict{err: errCrashed})
	}
	c.cancel()
}

func (c *client) acquire(cfg store.LeaseConfig) (*store.Held, error) {
	doc, _, err := apply.LoadState(c.ctx, c.door())
	if err != nil {
		return nil, err
	}
	cfg.Command, cfg.Now, cfg.MinEpoch = c.String(), c.clock, doc.Epoch
	held, err := store.Acquire(c.ctx, c.door(), cfg)
	if taken, ok := errors.AsType[*store.HeldError](err); ok {
		c.run.tally.add("lease refused")
		c.run.oracle.refused(c, taken.Lease)
	}
	return held, err
}

func (c *client) release(held *store.Held) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if held.Release(ctx) != nil {
		c.run.tally.add("release failed")
		c.outrun.Store(true)
	}
}

func (c *client) stepper(held *store.Held, scope apply.Scope) (*apply.Stepper, error) {
	return apply.New(held.Context(), apply.Config{
		Store: c.door(), Providers: c.providers(), Version: "soak", Epoch: held.Epoch(), Valid: held.Valid,
		Parallelism: 64, // so that none waits for another, whose turn would be by chance
		Now:         c.clock, Scope: scope,
		OnError: func(plan.Action, error) { c.run.tally.add("action failed") },
	})
}

// apply makes one change and follows it for a while.
func (c *client) apply() {
	if c.change == nil {
		c.changes++
		id := fmt.Sprintf("%d-%d", c.id, c.changes)
		c.change = &change{id: id, seed: hash(fmt.Sprint(c.run.seed, id))}
	}
	held, err := c.acquire(store.LeaseConfig{Wait: c.dice.between(0, 30*time.Second)})
	if err != nil {
		return
	}
	defer c.release(held)
	s, err := c.stepper(held, apply.Scope{})
	if err != nil {
		return
	}
	if doc := s.Document(); !slices.Contains(ledgerIn(&doc.Desired), c.change.id) {
		accepted := apply.Accept(doc, apply.Request{Desired: c.change.on(doc.Desired)})
		p, err := s.Preview(held.Context(), &accepted.Desired, accepted)
		if err != nil {
			return
		}
		if len(p.Blocked) > 0 { // as `fray apply` does, it leaves everything as it is
			c.run.tally.add("plan refused")
			c.change = nil
			return
		}
		s.SetScope(apply.ScopeOf(p))
		if err := s.Accept(held.Context(), accepted); err != nil {
			c.run.oracle.notSaved(c, err)
			if !c.insist(held, s) {
				return
			}
		}
	} else {
		s.SetScope(apply.Scope{All: true})
	}
	c.run.oracle.acknowledged(c, c.change.id)
	c.change = nil
	c.follow(held, s, func() bool {
		p := s.Last()
		return s.Idle() && len(p.Actions) == 0 && len(p.Pending) == 0
	})
}

// insist is what some do when a save has failed: try once more.
func (c *client) insist(held *store.Held, s *apply.Stepper) bool {
	if c.dice.chance(500) {
		return false
	}
	c.pause(time.Second)
	return s.Save(held.Context()) == nil
}

// follow steps until it is done, loses the lease, or has done enough.
func (c *client) follow(held *store.Held, s *apply.Stepper, done func() bool) {
	ctx := c.ctx
	if c.bound {
		ctx = held.Context()
	}
	for failures, until := 0, c.clock().Add(c.dice.between(time.Second, time.Minute)); failures < 5; {
		next, err := s.Step(ctx)
		switch {
		case errors.Is(err, apply.ErrStateMoved), errors.Is(err, store.ErrLeaseLost), ctx.Err() != nil:
			c.run.tally.add("holder deposed")
			c.run.oracle.notSaved(c, err)
			failures = 5
			continue
		case err != nil:
			failures++
			next = time.Second
		case done() || c.role == roleApply && c.clock().After(until):
			failures = 5
			continue
		}
		s.Wait(ctx, next)
	}
	time.Sleep(time.Millisecond) // or it would be by chance which calls have begun already
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	s.Drain(ctx)
	if s.Save(ctx) != nil {
		c.run.tally.add("last save failed")
	}
}

// guard leads until another client asks for the lease.
func (c *client) guard() {
	held, err := c.acquire(store.LeaseConfig{Yields: true, Wait: time.Hour})
	if err != nil {
		return
	}
	defer c.release(held)
	s, err := c.stepper(held, apply.Scope{All: true})
	if err != nil {
		return
	}
	c.follow(held, s, func() bool {
		wanted, err := store.PendingHandover(held.Context(), c.door())
		if err == nil && wanted {
			c.run.tally.add("lease handed over")
		}
		return err == nil && wanted
	})
}
