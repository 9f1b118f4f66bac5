package main

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// sealedStore encrypts the state on its way into the store and decrypts it on
// its way out, where that is asked for. Everything else passes.
type sealedStore struct {
	store.Store
	keys *keys
}

var (
	_ store.Store     = (*sealedStore)(nil)
	_ store.Versioned = (*sealedStore)(nil)
)

// store is the stack's store, with encryption.
func (k *keys) store() store.Store { return &sealedStore{Store: k.inner, keys: k} }

// Unwrap lets what looks for more than a Store find the one behind.
func (s *sealedStore) Unwrap() store.Store { return s.Store }

func (s *sealedStore) Get(ctx context.Context, key string) (store.Object, error) {
	object, err := s.Store.Get(ctx, key)
	return s.clear(ctx, object, err)
}

func (s *sealedStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if key == store.StateKey {
		encrypts, err := s.keys.encrypts(ctx)
		if err == nil && encrypts {
			data, err = s.keys.seal(ctx, keyring.KindState, data)
		}
		if err != nil {
			return 0, err
		}
	}
	return s.Store.Put(ctx, key, data, want)
}

// Versions passes; versions are encrypted or not as they were written.
func (s *sealedStore) Versions(ctx context.Context, key string) ([]store.Attrs, error) {
	versioned, ok := store.AsVersioned(s.Store)
	if !ok {
		return nil, store.ErrNoVersions
	}
	return versioned.Versions(ctx, key)
}

func (s *sealedStore) GetVersion(ctx context.Context, key string, g store.Generation) (store.Object, error) {
	versioned, ok := store.AsVersioned(s.Store)
	if !ok {
		return store.Object{}, store.ErrNoVersions
	}
	object, err := versioned.GetVersion(ctx, key, g)
	return s.clear(ctx, object, err)
}

// clear decrypts a state.
func (s *sealedStore) clear(ctx context.Context, object store.Object, err error) (store.Object, error) {
	if err != nil || object.Key != store.StateKey || !keyring.IsEncrypted(object.Data) {
		return object, err
	}
	ring, err := s.keys.keyRing(ctx)
	if err == nil && ring == nil {
		err = keyring.Locked(object.Data)
	}
	if err != nil {
		return store.Object{}, err
	}
	box, err := s.keys.box(ctx)
	if err != nil {
		return store.Object{}, err
	}
	// With what is damaged comes its generation, so that it can be replaced.
	object.Data, err = box.Open(keyring.KindState, object.Data)
	return object, err
}

var errNoRing = errors.New("the stack's key has no " + keyring.ObjectKey + " yet, so nothing can be encrypted; run fray apply first")

func (k *keys) box(ctx context.Context) (*keyring.Box, error) {
	secret, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	ring, err := k.keyRing(ctx)
	if err == nil && ring == nil {
		err = errNoRing
	}
	if err != nil {
		return nil, err
	}
	return ring.Box(secret)
}

func (k *keys) seal(ctx context.Context, kind keyring.Kind, data []byte) ([]byte, error) {
	box, err := k.box(ctx)
	if err != nil {
		return nil, err
	}
	return box.Seal(kind, data)
}
