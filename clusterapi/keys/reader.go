// Package keys publishes the public keys that tokens are verified with in the
// stack's store, and finds them there: the leader's in its lease, a host's in its
// report, a command's in an object of its own. Being able to write there is the
// proof; private keys are never stored.
//
// What a key may sign is package token's. Start with [Command] and [Reader].
package keys

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

const (
	// life is how long a key that was read is used without another read: that
	// long a removed one goes on to count without a call of Forget.
	life = 30 * time.Second
	// maxCached bounds the memory. So many look-ups go on at once: after a takeover all hosts
	// come at a time.
	maxCached  = 32 << 10
	maxLookups = 128
	// One that finds nothing takes missPause, and its place is free only after missRest: that
	// bounds the load of a store by strangers.
	missPause = 250 * time.Millisecond
	missRest  = 4 * time.Second
)

// Reader finds published keys, and remembers them for a while. It may be used
// concurrently.
type Reader struct {
	store store.Store
	hosts func(slice string, host int) (state.HostReport, bool)

	lookups chan struct{}

	mu       sync.Mutex
	known    map[token.ID]found
	epoch    uint64 // of what is known
	roster   Roster // of the controller before; nil: it does not count
	rosterAt time.Time
}

type found struct {
	key token.Key
	at  time.Time
}

var _ token.Source = (*Reader)(nil)

// NewReader returns a Reader of a store. hosts are reports that were read anyway;
// nil, or one that has no report: it is read from the store.
func NewReader(s store.Store, hosts func(slice string, host int) (state.HostReport, bool)) *Reader {
	return &Reader{store: s, hosts: hosts, lookups: make(chan struct{}, maxLookups), known: map[token.ID]found{}}
}

// Forget drops what was read under an earlier epoch of the lease: keys may have
// been revoked under that of now.
func (r *Reader) Forget(epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if epoch > r.epoch {
		r.epoch = epoch
		clear(r.known)
	}
}

// Key returns a key that is published.
func (r *Reader) Key(ctx context.Context, id token.ID) (token.Key, error) {
	if key, ok := r.cached(id); ok {
		return key, nil
	}
	if key, ok := r.seen(id); ok {
		return key, nil
	}
	if key, ok := r.listed(id); ok {
		return key, nil
	}
	select {
	case r.lookups <- struct{}{}:
	case <-ctx.Done():
		return token.Key{}, fmt.Errorf("look up a signing key: %w", ctx.Err())
	}
	free := func() { <-r.lookups }
	key, err := r.lookUp(ctx, id)
	if !errors.Is(err, token.ErrUnknownKey) {
		free()
		return key, err
	}
	time.AfterFunc(missRest, free)
	select {
	case <-time.After(missPause):
	case <-ctx.Done():
	}
	return token.Key{}, err
}

// lookUp reads a key, unless it is known by now.
func (r *Reader) lookUp(ctx context.Context, id token.ID) (token.Key, error) {
	// Meanwhile: after a takeover many hosts connect while their reports are being read.
	if key, ok := r.cached(id); ok {
		return key, nil
	}
	if key, ok := r.seen(id); ok {
		return key, nil
	}
	key, err := r.read(ctx, id)
	switch {
	case errors.Is(err, token.ErrUnknownKey):
		return token.Key{}, err
	case err != nil:
		return token.Key{}, fmt.Errorf("look up a signing key: %w", err)
	}
	r.remember(key)
	return key, nil
}

func (r *Reader) cached(id token.ID) (token.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.known[id]
	return f.key, ok && time.Since(f.at) < life
}

func (r *Reader) remember(key token.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxCached {
		maps.DeleteFunc(r.known, func(_ token.ID, f found) bool { return time.Since(f.at) >= life })
	}
	if len(r.known) >= maxCached {
		clear(r.known)
	}
	r.known[key.ID] = found{key, time.Now()}
}

// seen is a host's key in a report that was read anyway.
func (r *Reader) seen(id token.ID) (token.Key, bool) {
	if id.Role != token.RoleHost || r.hosts == nil {
		return token.Key{}, false
	}
	report, ok := r.hosts(id.Slice, id.Host)
	if !ok {
		return token.Key{}, false
	}
	key := token.Key{ID: id, Public: report.SigningKey}
	return key, fits(key)
}

// fits reports whether a key is the one that its ID names.
func fits(k token.Key) bool {
	return len(k.Public) == ed25519.PublicKeySize && token.Sum(k.Public) == k.ID.Sum
}

func (r *Reader) read(ctx context.Context, id token.ID) (token.Key, error) {
	key := token.Key{ID: id}
	var err error
	switch id.Role {
	case token.RoleLeader:
		var lease store.Lease
		if lease, err = store.ReadLease(ctx, r.store); err == nil && !lease.Released {
			key.Public = lease.SigningKey
		}
	case token.RoleHost:
		var report state.HostReport
		if err = r.decode(ctx, store.HostKey(id.Slice, id.Host), &report); err == nil {
			key.Public = report.SigningKey
		}
	case token.RoleCommand:
		var p published
		if err = r.decode(ctx, CommandKey(id.Sum), &p); err == nil {
			key.Public, key.User, key.Expires = p.Key, p.User, p.Expires
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return key, token.ErrUnknownKey
	case err != nil:
		return key, err
	case !fits(key):
		return key, token.ErrUnknownKey
	}
	return key, nil
}

func (r *Reader) decode(ctx context.Context, key string, into any) error {
	object, err := r.store.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := store.Decode(object.Data, into); err != nil {
		return fmt.Errorf("%s in %s is damaged: %w", key, r.store.Location(), err)
	}
	return nil
}
