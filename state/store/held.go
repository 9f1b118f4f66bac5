package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/fray-ml/fray/sleep"
)

// Held is a lease that this process holds. It renews itself; Release ends it.
type Held struct {
	store  Store
	cfg    LeaseConfig
	ctx    context.Context
	cancel context.CancelCauseFunc
	attest func() // ends the proof of life; nil without a Witness

	epoch uint64

	stop context.CancelFunc // of the renewals
	done chan struct{}      // closed when renewals have ended

	mu     sync.Mutex
	lease  Lease
	gen    Generation
	until  time.Time   // by this process's clock: when the lease expires
	expiry *time.Timer // ends the context at until
	last   error       // why the last renewal failed
	ended  error       // the lease is lost or released
	named  bool        // ended names to whom it was lost

	handover handoverLook
}

var errReleased = errors.New("lease released")

func (a *acquisition) hold(ctx context.Context, l Lease, gen Generation, sent time.Time) *Held {
	h := &Held{
		store: a.store, cfg: a.cfg, attest: a.attest,
		epoch: l.Epoch, done: make(chan struct{}),
		lease: l, gen: gen, until: sent.Add(a.cfg.TTL),
		handover: handoverLook{asked: make(chan struct{}, 1)},
	}
	h.mu.Lock() // keeps the timer from firing into a half-made Held
	defer h.mu.Unlock()
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	renewals, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	h.expiry = time.AfterFunc(h.until.Sub(a.cfg.Now()), h.expire)
	go h.renewals(renewals)
	return h
}

// Context is a child of the one given to Acquire. It ends with a cause that
// wraps ErrLeaseLost when the lease is lost, or cannot be renewed before it
// expires, and with context.Canceled on Release.
func (h *Held) Context() context.Context { return h.ctx }

// Epoch is that of this acquisition.
func (h *Held) Epoch() uint64 { return h.epoch }

// Lease is the lease as this process last wrote it.
func (h *Held) Lease() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// Valid returns nil while the lease is certainly held, else an ErrLeaseLost.
// Ask before each use: a process that was stopped or a machine that slept may
// run on for a moment before Context ends.
func (h *Held) Valid() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return h.ended
	}
	now := h.cfg.Now()
	if !now.Before(h.until) {
		h.loseLocked(h.expiredReason())
		return h.ended
	}
	// The monotonic clock stands still while a machine sleeps; the others'
	// clocks do not. The next renewal shows whether it was taken over.
	if !now.Round(0).Before(h.until.Round(0)) {
		return fmt.Errorf("%w: this machine's clock has passed its expiry", ErrLeaseLost)
	}
	return nil
}

func (h *Held) expiredReason() string {
	if h.last == nil {
		return "it was not renewed before it expired; was this process stopped?"
	}
	return fmt.Sprintf("it could not be renewed before it expired: %v", h.last)
}

// expire runs at the expiry that was known when its timer was set.
func (h *Held) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := h.until.Sub(h.cfg.Now()); left > 0 {
		h.expiry.Reset(left)
		return
	}
	h.loseLocked(h.expiredReason())
}

// Lost reports why the lease was lost and who has taken it over, as far as that
// can be read; nil if it was not lost.
func (h *Held) Lost(ctx context.Context) error {
	h.mu.Lock()
	lost, named := h.ended, h.named
	h.mu.Unlock()
	switch {
	case !errors.Is(lost, ErrLeaseLost):
		return nil
	case named:
		return lost
	}
	found, _, err := readLease(ctx, h.store)
	if err != nil || found.Epoch <= h.epoch {
		return lost
	}
	return fmt.Errorf("%w; %s", lost, found.taken())
}

func (h *Held) loseLocked(reason string) {
	if h.ended != nil {
		return
	}
	h.ended = fmt.Errorf("%w: %s", ErrLeaseLost, reason)
	h.expiry.Stop()
	h.stop()
	h.cancel(h.ended)
}

// renewals renews the lease three times in its life, and more often while that
// fails, until it is lost or released.
func (h *Held) renewals(ctx context.Context) {
	defer close(h.done)
	for {
		wait := h.untilRenewal()
		for sleep.For(ctx, wait) {
			err := h.renew(ctx)
			if err == nil {
				break
			}
			h.mu.Lock()
			h.last = err
			h.mu.Unlock()
			wait = h.cfg.TTL / 20
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// untilRenewal is the time until a third of the TTL has passed since the last
// write was sent, however long the write took.
func (h *Held) untilRenewal() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.until.Sub(h.cfg.Now())
	return jittered(max(left-h.cfg.TTL*2/3, h.cfg.TTL/20))
}

// jittered is d give or take a tenth, which keeps holders that started together
// from writing together. It draws on the randomness that a test can seed.
func jittered(d time.Duration) time.Duration {
	var b [2]byte
	rand.Read(b[:]) // never fails
	return time.Duration(float64(d) * (0.9 + 0.2*float64(binary.BigEndian.Uint16(b[:]))/math.MaxUint16))
}

func (h *Held) renew(ctx context.Context) error {
	h.mu.Lock()
	next, gen, left := h.lease, h.gen, h.until.Sub(h.cfg.Now())
	h.mu.Unlock()
	// A request that hangs must leave time for others: what it may still do is
	// recognized as our own.
	ctx, cancel := context.WithTimeoutCause(ctx, min(left, writeDeadline(h.cfg.TTL)), errLate)
	defer cancel()
	sent := h.cfg.Now()
	next.RenewedAt, next.ExpiresAt = sent.UTC(), sent.Add(h.cfg.TTL).UTC()
	gen, err := putLease(ctx, h.store, &next, gen)
	if errors.Is(err, ErrConflict) {
		return h.adopt(ctx)
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return h.ended
	}
	h.lease, h.gen, h.until, h.last = next, gen, sent.Add(h.cfg.TTL), nil
	h.expiry.Reset(h.until.Sub(h.cfg.Now()))
	return nil
}

// adopt finds out who changed the lease. An earlier write of our own whose reply
// was lost is built upon by the next renewal; anybody else's ends ours.
func (h *Held) adopt(ctx context.Context) error {
	found, gen, err := readLease(ctx, h.store)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case gen == Absent:
		h.loseLocked("another process removed " + LeaseKey)
	case found.Broken != nil && found.Broken.Epoch == h.epoch: // whether or not it has a holder by now
		h.loseLocked(found.Broken.String())
	case found.Holder != h.lease.Holder:
		h.named = h.named || h.ended == nil
		h.loseLocked(found.taken())
	default:
		h.gen = gen
		if found.Asked != h.lease.Asked {
			h.lease.Asked = found.Asked
			h.handover.notify()
		}
	}
	return ErrConflict
}

// Release gives the lease back by writing that it is free, and ends Context.
// ctx should not be the one that a Ctrl-C has just ended. When it fails the
// lease lapses by itself; it waits no longer than until then. Releasing a lost or
// released lease does nothing.
func (h *Held) Release(ctx context.Context) error {
	h.stop()
	defer h.endAttest()
	ctx, cancel := h.untilExpiry(ctx)
	defer cancel()
	select {
	case <-h.done:
	case <-ctx.Done(): // a renewal that the store does not give up; what it writes yet is a lease that lapses
	}
	h.mu.Lock()
	over := h.ended != nil
	if !over {
		h.ended = errReleased
		h.expiry.Stop()
	}
	l, gen := h.lease, h.gen
	h.mu.Unlock()
	if over {
		return nil
	}
	defer h.cancel(nil)
	l.Released, l.ExpiresAt = true, h.cfg.Now().UTC()
	for {
		_, err := putLease(ctx, h.store, &l, gen)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("release lease: %w", err)
		}
		// Either a renewal's reply was lost, or it was taken over.
		found, present, err := readLease(ctx, h.store)
		if err != nil {
			return fmt.Errorf("release lease: %w", err)
		}
		if found.Holder != l.Holder || found.Released {
			return nil
		}
		gen = present
	}
}

// untilExpiry is a child of ctx that ends when the lease lapses by itself.
func (h *Held) untilExpiry(ctx context.Context) (context.Context, context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return context.WithTimeoutCause(ctx, h.until.Sub(h.cfg.Now()), errLate)
}

func (h *Held) endAttest() {
	if h.attest == nil {
		return
	}
	h.attest()
	if w := witnessOf(h.store); w != nil {
		w.Forget(h.lease.Holder)
	}
}
