package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotLive reports that the lease is not held, so that there is nothing to break.
var ErrNotLive = errors.New("the lease is not held")

// BrokenLease is the record of a live lease that was ended by force. Leases
// after it carry it along, so that the last one can be reported.
type BrokenLease struct {
	By     string    `json:"by"`     // who did it, for people
	At     time.Time `json:"at"`     // by that machine's clock
	Holder string    `json:"holder"` // who held it, for people
	Epoch  uint64    `json:"epoch"`  // of the lease that was broken
}

func (b *BrokenLease) String() string {
	return fmt.Sprintf("%s broke it at %s", b.By, b.At.Local().Format(leaseTime))
}

// Break ends a live lease, the one that the caller has seen, by writing that it
// is released, and returns it as it then stands. cfg names who breaks it, by
// what command. The error is an ErrNotLive if the lease has lapsed or was given
// back, and an ErrConflict if it has another holder by now.
//
// Its holder, if alive, learns of it at its next renewal, after about a third
// of its TTL. Until then it may still act beside the next one; only its writes
// of the state fail, once that one has written it.
func Break(ctx context.Context, s Store, cfg LeaseConfig, seen Lease) (Lease, error) {
	cfg = cfg.withDefaults()
	if err := CheckPlace(s); err != nil {
		return Lease{}, fmt.Errorf("break lease: %w", err)
	}
	for {
		broken, err := tryBreak(ctx, s, cfg, seen)
		if err == nil {
			return broken, nil
		}
		if !errors.Is(err, errRenewed) {
			return Lease{}, fmt.Errorf("break lease: %w", err)
		}
	}
}

// errRenewed: a renewal was faster, and the lease is still the same one.
var errRenewed = errors.New("the lease was renewed meanwhile")

func tryBreak(ctx context.Context, s Store, cfg LeaseConfig, seen Lease) (Lease, error) {
	l, gen, err := readLease(ctx, s)
	now := cfg.Now()
	switch {
	case err != nil:
		return Lease{}, err
	case gen == Absent || !l.Live(now):
		return Lease{}, ErrNotLive
	case l.Holder != seen.Holder:
		return Lease{}, fmt.Errorf("%w: it is now held by %s with epoch %d; read it again", ErrConflict, l.Who(), l.Epoch)
	}
	l.Broken = &BrokenLease{By: newLease(cfg).Who(), At: now.UTC(), Holder: l.Who(), Epoch: l.Epoch}
	l.Released, l.ExpiresAt = true, now.UTC()
	_, err = putLease(ctx, s, &l, gen)
	if errors.Is(err, ErrConflict) {
		return Lease{}, errRenewed
	}
	return l, err
}
