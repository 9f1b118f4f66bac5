package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fray-ml/fray/sleep"
)

const (
	// handoverPatience is how long a holder that yields may take to do so.
	handoverPatience = 10 * time.Second
	handoverPoll     = 50 * time.Millisecond
	leasePoll        = 250 * time.Millisecond
	// takePatience is how long a free lease may take to be written.
	takePatience = time.Minute
)

// Acquire takes the lease with a new epoch if it is free: never taken,
// released, expired, or left by a process of this machine that is provably
// dead. A holder that yields is asked to. Any other live holder is waited for
// as long as cfg.Wait, and then named in a *HeldError.
//
// The lease is renewed until Release, also after ctx has ended.
func Acquire(ctx context.Context, s Store, cfg LeaseConfig) (*Held, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	if err := settlePlace(ctx, s); err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	a := &acquisition{store: s, witness: witnessOf(s), cfg: cfg, mine: newLease(cfg)}
	held, err := a.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	return held, nil
}

// acquisition is one call of Acquire.
type acquisition struct {
	store   Store
	witness Witness // nil: the store has none
	cfg     LeaseConfig
	mine    Lease
	attest  func() // ends the proof of life; nil before it began

	waiting time.Time // since when a live holder has been waited for; zero: not yet
	seen    Generation
	seenAt  time.Time // since when the lease has had that generation

	handover *Handover // asked for

	taking time.Time // when the first write of the lease began; zero: not yet
}

func (a *acquisition) run(ctx context.Context) (*Held, error) {
	held, err := a.try(ctx)
	if a.handover != nil {
		a.clearHandover(ctx)
	}
	if err != nil && a.attest != nil {
		a.attest()
	}
	return held, err
}

func (a *acquisition) try(ctx context.Context) (*Held, error) {
	for {
		lease, gen, err := readLease(ctx, a.store)
		if err != nil {
			return nil, err
		}
		free := a.free(lease, gen)
		if free && a.cfg.Yields {
			// Another process asked for the lease and has not seen yet that it is free.
			pending, err := PendingHandover(ctx, a.store)
			if err != nil {
				return nil, err
			}
			if pending {
				if !sleep.For(ctx, a.pace(leasePoll, leasePoll)) {
					return nil, context.Cause(ctx)
				}
				continue
			}
		}
		if free {
			held, err := a.take(ctx, lease, gen)
			if errors.Is(err, ErrConflict) || a.again(ctx, err) {
				continue // another holder was faster, or an earlier write of our own
			}
			return held, err
		}
		if err := a.wait(ctx, lease); err != nil {
			return nil, err
		}
	}
}

// free reports whether a lease may be taken over.
func (a *acquisition) free(l Lease, gen Generation) bool {
	now := a.cfg.Now()
	if gen != a.seen || a.seenAt.IsZero() {
		a.seen, a.seenAt = gen, now
	}
	if l.Holder == a.mine.Holder { // written by a try that was given up
		return true
	}
	if gen == Absent || l.Released || !l.Live(now) && (a.sameClock(l) || now.Sub(l.ExpiresAt) >= clockSkew) {
		return true
	}
	// It was not renewed for as long as it is valid, whatever the clocks show.
	if now.Sub(a.seenAt) >= l.validity() {
		return true
	}
	if a.witness == nil {
		return l.Gone()
	}
	return a.sameMachine(l) && a.witness.Ended(l.Holder)
}

// clockSkew is how far the clocks of two machines may be apart: what another
// one's lease records as its expiry is only believed beyond that.
const clockSkew = 15 * time.Minute

// sameClock reports whether a holder's times are by the clock of this machine.
func (a *acquisition) sameClock(l Lease) bool {
	return l.Host == a.mine.Host && l.BootID == a.mine.BootID && l.BootID != ""
}

func (a *acquisition) take(ctx context.Context, old Lease, gen Generation) (*Held, error) {
	if a.witness != nil && a.attest == nil {
		end, err := a.witness.Attest(a.mine.Holder)
		if err != nil {
			return nil, err
		}
		a.attest = end
	}
	sent := a.cfg.Now()
	if a.taking.IsZero() {
		a.taking = sent
	}
	l := a.mine
	l.Epoch = max(old.Epoch, a.cfg.MinEpoch) + 1
	l.Broken = old.Broken
	l.AcquiredAt, l.RenewedAt, l.ExpiresAt = sent.UTC(), sent.UTC(), sent.Add(a.cfg.TTL).UTC()
	writing, cancel := context.WithTimeoutCause(ctx, writeDeadline(a.cfg.TTL), errLate)
	defer cancel()
	gen, err := putLease(writing, a.store, &l, gen)
	if err != nil && writing.Err() != nil && !errors.Is(err, errLate) {
		err = fmt.Errorf("%w: %w", errLate, err)
	}
	if err != nil {
		return nil, err
	}
	if a.cfg.Now().Sub(sent) > a.cfg.TTL/2 { // the store did not heed the deadline
		return nil, errLate
	}
	if a.witness != nil && old.Holder != "" && old.Holder != l.Holder {
		a.witness.Forget(old.Holder)
	}
	return a.hold(ctx, l, gen, sent), nil
}

// writeDeadline is how long one write of a lease may take. What is left of the
// TTL is for other tries, and for the work: the TTL counts from when a write was
// sent.
func writeDeadline(ttl time.Duration) time.Duration { return ttl / 4 }

// errLate reports that a write of the lease was given up, so that another one can
// still be in time; it may have happened, or happen later.
var errLate = fmt.Errorf("the store did not answer a write of the lease in time: %w", context.DeadlineExceeded)

// again reports whether a write of the lease that failed is worth another try.
// The one that was given up changes nothing then: either it is found as our own,
// or the precondition of one of the two fails.
func (a *acquisition) again(ctx context.Context, err error) bool {
	return errors.Is(err, errLate) && ctx.Err() == nil && a.cfg.Now().Sub(a.taking) < takePatience
}

// wait lets a live holder some time, first asking one that yields to do so.
// It returns a *HeldError when patience is over.
func (a *acquisition) wait(ctx context.Context, l Lease) error {
	now := a.cfg.Now()
	if a.waiting.IsZero() {
		a.waiting = now
	}
	patience, poll := a.cfg.Wait, leasePoll
	asks := l.Yields && !a.cfg.Yields
	if asks {
		patience, poll = max(patience, handoverPatience), handoverPoll
		if a.handover == nil || !a.handover.pending(now) {
			h, err := RequestHandover(ctx, a.store, a.mine)
			if err != nil {
				return err
			}
			a.handover = &h
		}
		a.mark(ctx, l)
	}
	if a.dying(l) {
		patience, poll = max(patience, dyingPatience), handoverPoll
	}
	if !l.Live(now) { // by our clock; unless it is renewed, it is free
		patience = max(patience, l.validity()+leasePoll)
	}
	left := patience - now.Sub(a.waiting)
	if left <= 0 && asks {
		return fmt.Errorf("it did not give way within %v: %w", patience, &HeldError{Lease: l})
	}
	if left <= 0 {
		return &HeldError{Lease: l}
	}
	if !sleep.For(ctx, min(left, a.pace(poll, a.expiry(l, now)))) {
		return context.Cause(ctx)
	}
	return nil
}

// expiry is the time until a lease that is not renewed may be taken over.
func (a *acquisition) expiry(l Lease, now time.Time) time.Duration {
	left := a.seenAt.Add(l.validity()).Sub(now)
	if a.sameClock(l) {
		return min(left, l.ExpiresAt.Sub(now))
	}
	return left
}

// pace is how long to wait before the lease is read again, expiry being
// the time until it lapses. A store that wants time between writes is far away
// and shared by many: it is read less often, and at random, so that they
// neither read nor try together.
func (a *acquisition) pace(poll, expiry time.Duration) time.Duration {
	interval := a.store.WriteInterval()
	if interval == 0 {
		return min(poll, max(expiry, time.Millisecond))
	}
	poll = max(poll, interval/4)
	return poll + rand.N(2*poll)
}

// dyingPatience is how long a holder that is gone may still seem to live: a
// child that it was starting when it was killed keeps its locks until it execs.
const dyingPatience = 2 * time.Second

// dying reports whether a holder was a process of this machine that is gone.
// Its pid alone proves nothing, since pids are used again; its lock does.
func (a *acquisition) dying(l Lease) bool {
	return a.sameMachine(l) && l.Gone()
}

// sameMachine reports whether a holder ran on this machine since its last boot,
// where a witness can prove it.
func (a *acquisition) sameMachine(l Lease) bool {
	return a.witness != nil && l.Host == a.mine.Host && l.BootID == a.mine.BootID && l.BootID != ""
}

// clearHandover also runs when ctx has ended, so that the request of a process
// that gave up does not block the holder that yielded. One that cannot be
// cleared expires.
func (a *acquisition) clearHandover(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handoverPatience)
	defer cancel()
	_ = ClearHandover(ctx, a.store, *a.handover)
}
