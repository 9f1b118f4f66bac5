package controller

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// standbyPace is how often a controller that waits for the lease reads what has followed in the
// state, so that it does not have to read a large one whole once it leads.
const standbyPace = 15 * time.Second

// acquire waits for the lease, and returns it with a reader that knows the state. A controller
// that has led does not begin a new state where its own is gone.
func acquire(ctx context.Context, cfg Config, served *services, led bool) (*store.Held, *apply.StateReader, error) {
	known := apply.NewStateReader(cfg.Store)
	doc, _, err := known.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if led && doc == nil {
		return nil, nil, fmt.Errorf("%w: %s was removed from %s", apply.ErrStateLost, store.StateKey, cfg.Store.Location())
	}
	var epoch uint64 // epochs must not fall even if the lease's object was removed
	if doc != nil {
		epoch = doc.Epoch
	}
	relayKey, err := served.relayKey()
	if err != nil {
		return nil, nil, err
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

// follow reads what follows in a large state until ctx ends. A read that fails is made again
// once the state is needed.
func follow(ctx context.Context, known *apply.StateReader) {
	for known.Journaled() && sleep.For(ctx, standbyPace) {
		_, _, _ = known.Read(ctx)
	}
}
