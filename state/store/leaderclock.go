package store

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/fray-ml/fray/sleep"
)

// LeaderClock reports whether a controller leads, and the time by its clock, however
// wrong the clock of this machine is: a lease that is renewed is alive, and each
// renewal carries its writer's time. It may be used concurrently.
type LeaderClock struct {
	store Store

	mu       sync.Mutex
	observed time.Time // when the lease was last read; zero: never
	last     Sight     // what was seen then
	holder   string
	nonce    string    // of the holder's last renewal that was seen
	sighted  time.Time // since when the lease has had that nonce
	renews   bool      // the holder was seen to renew its lease
	at       time.Time // the least that the holder's clock showed at from
	from     time.Time
}

// NewLeaderClock returns the clock of the leader of the stack in a store.
func NewLeaderClock(s Store) *LeaderClock { return &LeaderClock{store: s} }

// Sight is what a LeaderClock sees.
type Sight struct {
	Lease Lease // zero if there never was one
	// Leads reports that its holder lives: it renews the lease, or did so a moment ago.
	Leads bool
	// Now is the time by the holder's clock, late by less than a lease is valid.
	// Without a leader it is this machine's, or what the last holder's must be
	// if that is later.
	Now time.Time
}

// Observe reads the lease. Where the clocks seem to differ it reads again until
// the lease is renewed or has lapsed, which takes as long as a lease is valid at
// most. With an error comes what is known without the store.
func (c *LeaderClock) Observe(ctx context.Context) (Sight, error) {
	for {
		lease, err := ReadLease(ctx, c.store)
		switch {
		case errors.Is(err, ErrNotFound):
			return Sight{Now: time.Now()}, nil
		case err != nil:
			return Sight{Now: c.time(time.Now())}, err
		}
		if sight, sure := c.see(lease, time.Now()); sure {
			return sight, nil
		}
		if !sleep.For(ctx, max(leasePoll, c.store.WriteInterval()/4)) {
			return Sight{Lease: lease, Now: c.time(time.Now())}, context.Cause(ctx)
		}
	}
}

// longDead is since when a lease may have lapsed, by the clock of this machine,
// for its holder to be taken for dead without another observation.
const longDead = time.Hour

// sightLife is how long Now trusts an observation.
const sightLife = 5 * time.Second

// Now is the leader's time by an observation that may be some seconds old.
func (c *LeaderClock) Now(ctx context.Context) time.Time { return c.Recent(ctx).Now }

// Recent is the result of an observation that may be some seconds old. Its Now is up to date.
func (c *LeaderClock) Recent(ctx context.Context) Sight {
	c.mu.Lock()
	observed, last := c.observed, c.last
	c.mu.Unlock()
	if since := time.Since(observed); !observed.IsZero() && since < sightLife {
		last.Now = last.Now.Add(since)
		return last
	}
	sight, _ := c.Observe(ctx) // without the store, as well as is known
	return sight
}

// see takes a lease in. It is not sure while another observation may show more.
func (c *LeaderClock) see(l Lease, now time.Time) (Sight, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.Holder != c.holder:
		c.holder, c.nonce, c.sighted, c.renews = l.Holder, l.Nonce, now, false
		c.at, c.from = l.RenewedAt, now
	case l.Nonce != c.nonce:
		c.nonce, c.sighted, c.renews = l.Nonce, now, c.renews || !l.Released
	}
	if l.RenewedAt.After(c.leastLocked(now)) {
		c.at, c.from = l.RenewedAt, now
	}
	sight := Sight{Lease: l, Now: c.timeLocked(now)}
	off := now.Sub(l.RenewedAt)
	switch {
	case sameBoot(l):
		sight.Leads, sight.Now = l.Live(now), now
	case c.renews:
		sight.Leads = !l.Released && now.Sub(c.sighted) < l.validity()
	case l.Released, off >= longDead, now.Sub(c.sighted) >= l.validity():
	case off.Abs() < l.validity(): // the clocks agree, as far as is known
		sight.Leads, sight.Now = true, now
	default:
		return sight, false
	}
	c.observed, c.last = now, sight
	return sight, true
}

// time is the time as far as it is known without another observation.
func (c *LeaderClock) time(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timeLocked(now)
}

// timeLocked is the holder's clock if it was seen to renew its lease; else that
// clock is known not to be behind what its lease records.
func (c *LeaderClock) timeLocked(now time.Time) time.Time {
	least := c.leastLocked(now)
	if c.renews || c.holder != "" && least.After(now) {
		return least
	}
	return now
}

func (c *LeaderClock) leastLocked(now time.Time) time.Time { return c.at.Add(now.Sub(c.from)) }

// sameBoot reports whether a lease's times are by the clock of this machine.
func sameBoot(l Lease) bool {
	host, err := os.Hostname()
	return err == nil && l.Host == host && l.BootID != "" && l.BootID == bootID()
}
