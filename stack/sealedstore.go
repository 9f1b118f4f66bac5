package stack

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// sealedStore encrypts the state, its journal and the ledger of usage on their way into the store and
// decrypts them on their way out, where that is asked for. Everything else passes.
type sealedStore struct {
	store.Store
	keys *Keys
}

var (
	_ store.Store     = (*sealedStore)(nil)
	_ store.Versioned = (*sealedStore)(nil)
	_ store.Resealer  = (*sealedStore)(nil)
)

// store is the stack's store, with encryption.
func (k *Keys) store() store.Store { return &sealedStore{Store: k.inner, keys: k} }

// Unwrap returns the store behind, which may offer more.
func (s *sealedStore) Unwrap() store.Store { return s.Store }

func (s *sealedStore) Get(ctx context.Context, key string) (store.Object, error) {
	object, err := s.Store.Get(ctx, key)
	object, err = s.clear(ctx, object, err)
	return s.anew(ctx, object, err, resealed(object.Key))
}

func (s *sealedStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if kind := encryptedKind(key); kind != "" {
		encrypts, err := s.keys.Encrypts(ctx)
		if err == nil && encrypts {
			data, err = s.keys.Seal(ctx, kind, data)
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
	object, err = s.clear(ctx, object, err)
	return s.anew(ctx, object, err, resealVersion)
}

// ResealDocument gives a document as anew does.
func (s *sealedStore) ResealDocument(ctx context.Context, doc *state.Document) (*state.Document, error) {
	rotating, err := s.keys.rotating(ctx)
	if err != nil || !rotating {
		return doc, err
	}
	key, err := s.keys.key(ctx)
	if err != nil {
		return nil, err
	}
	if next, err := amend.Reseal(doc, key); err == nil {
		return next, nil
	}
	return doc, nil // its reader reports what is wrong with it
}

// encryptedKind is what an object of a key is where it is encrypted, "" for one that is not.
func encryptedKind(key string) keyring.Kind {
	switch {
	case key == store.StateKey:
		return keyring.KindState
	case strings.HasPrefix(key, store.JournalPrefix):
		return keyring.KindJournal
	case strings.HasPrefix(key, store.UsagePrefix):
		return keyring.KindUsage
	}
	return ""
}

// clear decrypts a document.
func (s *sealedStore) clear(ctx context.Context, object store.Object, err error) (store.Object, error) {
	kind := encryptedKind(object.Key)
	if err != nil || kind == "" || !keyring.IsEncrypted(object.Data) {
		return object, err
	}
	box, err := s.keys.boxFor(ctx, object.Data)
	if err != nil {
		return store.Object{}, err
	}
	// With what is damaged comes its generation, so that it can be replaced.
	object.Data, err = box.Open(kind, object.Data)
	return object, err
}

// anew gives what a former key sealed as if the present one had sealed it, so that
// nothing has changed for who compares. Nothing is sealed by a former key unless a
// `fray state rekey` is on its way or has died on it.
func (s *sealedStore) anew(ctx context.Context, object store.Object, err error, reseal func(data []byte, r schema.Resealer) ([]byte, error)) (store.Object, error) {
	if err != nil || reseal == nil || !bytes.Contains(object.Data, []byte(`"sealed":`)) {
		return object, err
	}
	rotating, err := s.keys.rotating(ctx)
	if err != nil || !rotating {
		return object, err
	}
	key, err := s.keys.key(ctx)
	if err != nil {
		return store.Object{}, err
	}
	if data, err := reseal(object.Data, key); err == nil { // else its reader reports what is wrong with it
		object.Data = data
	}
	return object, nil
}

// resealed returns what seals an object's secrets anew, nil for one that has none.
func resealed(key string) func(data []byte, r schema.Resealer) ([]byte, error) {
	switch {
	case key == store.StateKey:
		return resealState
	case strings.HasPrefix(key, store.AssignPrefix):
		return resealAssignment
	}
	return nil
}

// resealState leaves a snapshot as it is: the entries of its journal go with what it says.
func resealState(data []byte, r schema.Resealer) ([]byte, error) {
	doc, err := state.Decode(data)
	if err != nil || doc.Journal != nil {
		return data, err
	}
	return resealDocument(doc, r)
}

// resealVersion is for a version of the state that nothing follows.
func resealVersion(data []byte, r schema.Resealer) ([]byte, error) {
	doc, err := state.Decode(data)
	if err != nil {
		return nil, err
	}
	return resealDocument(doc, r)
}

func resealDocument(doc state.Document, r schema.Resealer) ([]byte, error) {
	next, err := amend.Reseal(&doc, r)
	if err != nil {
		return nil, err
	}
	return state.Encode(*next)
}

func resealAssignment(data []byte, r schema.Resealer) ([]byte, error) {
	a, err := store.DecodeAssignment(data)
	if err != nil {
		return nil, err
	}
	if a.Run, err = amend.ResealRun(a.Run, r); err != nil {
		return nil, err
	}
	return store.Encode(a)
}

var errNoRing = errors.New("the stack's key has no " + keyring.ObjectKey + " yet, so nothing can be encrypted; run fray apply first")

func (k *Keys) box(ctx context.Context) (*keyring.Box, error) {
	secrets, err := k.Open(ctx)
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
	return ring.BoxOf(secrets)
}

// Seal encrypts a document of a kind.
func (k *Keys) Seal(ctx context.Context, kind keyring.Kind, data []byte) ([]byte, error) {
	box, err := k.box(ctx)
	if err != nil {
		return nil, err
	}
	return box.Seal(kind, data)
}
