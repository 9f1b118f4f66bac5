package controller

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// standbyPace is how often a controller that waits for the lease reads what has followed in the
// state, so that it does not have to read a large one whole once it leads.
const standbyPace = 15 * time.Second

// mailPace is how often it reads which assignments have changed.
const mailPace = time.Minute

// acquire waits for the lease, and returns it with what was read meanwhile. A controller
// that has led does not begin a new state where its own is gone.
func acquire(ctx context.Context, cfg Config, served *services, led bool) (*store.Held, apply.Known, error) {
	known := apply.Known{State: apply.NewStateReader(cfg.Store), Mail: mail.NewAhead(cfg.Store)}
	doc, _, err := known.State.Read(ctx)
	if err != nil {
		return nil, known, err
	}
	if led && doc == nil {
		return nil, known, fmt.Errorf("%w: %s was removed from %s", apply.ErrStateLost, store.StateKey, cfg.Store.Location())
	}
	var epoch uint64 // epochs must not fall even if the lease's object was removed
	if doc != nil {
		epoch = doc.Epoch
	}
	relayKey, err := served.relayKey()
	if err != nil {
		return nil, known, err
	}
	waiting, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { follow(waiting, known) })
	lease, err := store.Acquire(ctx, cfg.Store, store.LeaseConfig{
		Command: cfg.Command, Yields: true, Wait: takeover, MinEpoch: epoch, TTL: cmp.Or(cfg.TTL, defaultTTL),
		ControllerAddress: served.address, ControllerFingerprint: served.fingerprint, ControllerHTTP: served.http,
		SigningKey: served.signingKey(), RelayKey: relayKey, Stack: cfg.Service.Stack,
	})
	stop()
	following.Wait()
	return lease, known, err
}

// follow reads what follows in a large state, and the assignments, until ctx ends. What cannot be
// read now is read once it is needed.
func follow(ctx context.Context, known apply.Known) {
	for mailAt := time.Now(); known.State.Journaled(); {
		if now := time.Now(); !now.Before(mailAt) {
			mailAt = now.Add(mailPace)
			_ = known.Mail.Read(ctx)
		}
		if !sleep.For(ctx, standbyPace) {
			return
		}
		_, _, _ = known.State.Read(ctx)
	}
}
