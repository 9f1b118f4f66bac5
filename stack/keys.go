package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/kms"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// Keys is where the stack's key is: it seals secrets, and encrypts the state
// where that is asked for. A directory keeps it in clear in secret.key, which
// only its owner may read; a bucket, and a directory whose state is encrypted,
// keep it in key.json, wrapped or not.
type Keys struct {
	inner    store.Store // without encryption
	file     string      // secret.key; "" in a bucket
	cache    string      // where this machine's agents read a key that is not in file
	declared *schema.Encryption

	mu         sync.Mutex
	read       bool
	Ring       *keyring.Keyring // nil: there is no key.json
	generation store.Generation // of key.json
	secrets    *state.Secrets   // once opened
	retired    bool             // key.json may go once the state is written
	Note       string           // what was done to key.json, for people
}

// NewKeys returns the keys of a stack, whose store is inner.
func NewKeys(inner store.Store, s *Stack, declared *schema.Encryption) *Keys {
	k := &Keys{inner: inner, declared: declared}
	if !s.At.InBucket() {
		k.file = filepath.Join(s.Root, "secret.key")
	}
	if config, err := os.UserConfigDir(); err == nil {
		// Each emulator has buckets of its own, whose names may be the same.
		sum := sha256.Sum256([]byte(string(s.At) + os.Getenv(EndpointVariable)))
		k.cache = filepath.Join(config, "fray", "keys", hex.EncodeToString(sum[:8])+".key")
	}
	return k
}

// kmsServices are the services whose keys may wrap a stack's.
func kmsServices() keyring.Openers {
	return keyring.Openers{keyring.SchemeGoogle: func(ctx context.Context, key string) (keyring.KMS, error) {
		return kms.Open(ctx, kms.Config{Key: key})
	}}
}

// PolicyOf is what is declared.
func PolicyOf(declared *schema.Encryption) keyring.Policy {
	if declared == nil {
		return keyring.Policy{}
	}
	return keyring.Policy{Recipients: declared.Recipients, KMSKey: declared.KMSKey}
}

func (k *Keys) policy() keyring.Policy { return PolicyOf(k.declared) }

// keyRing reads key.json once; nil where there is none.
func (k *Keys) keyRing(ctx context.Context) (*keyring.Keyring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ringLocked(ctx)
}

func (k *Keys) ringLocked(ctx context.Context) (*keyring.Keyring, error) {
	if k.read {
		return k.Ring, nil
	}
	object, err := k.inner.Get(ctx, keyring.ObjectKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		k.Ring, k.generation = nil, store.Absent
	case err != nil:
		return nil, err
	default:
		if k.Ring, err = keyring.Parse(object.Data); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", keyring.ObjectKey, k.inner.Location(), err)
		}
		k.generation = object.Generation
	}
	k.read = true
	return k.Ring, nil
}

// Open returns the keys; an fs.ErrNotExist if the stack has none yet.
func (k *Keys) Open(ctx context.Context) (state.Secrets, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.openLocked(ctx)
}

func (k *Keys) openLocked(ctx context.Context) (state.Secrets, error) {
	if k.secrets != nil {
		return *k.secrets, nil
	}
	ring, err := k.ringLocked(ctx)
	var found state.Secrets
	switch {
	case err != nil:
	case ring != nil:
		found, err = OpenRing(ctx, ring)
	case k.file != "":
		found, err = store.LoadSecrets(k.file)
	default:
		err = fmt.Errorf("there is no %s in %s: %w", keyring.ObjectKey, k.inner.Location(), fs.ErrNotExist)
	}
	if err != nil {
		return state.Secrets{}, err
	}
	k.secrets = &found
	return found, nil
}

// OpenRing opens a key with what this user has.
func OpenRing(ctx context.Context, ring *keyring.Keyring) (state.Secrets, error) {
	e := keyring.Environment{AgeIdentity: os.Getenv(keyring.IdentityVariable)}
	var err error
	if e.ConfigDir, err = os.UserConfigDir(); err != nil {
		e.ConfigDir = ""
	}
	if e.HomeDir, err = os.UserHomeDir(); err != nil {
		e.HomeDir = ""
	}
	return ring.OpenAll(ctx, keyring.Unlock{IdentityFiles: ring.IdentityFiles(e), KMS: kmsServices()})
}

// Encrypts reports whether documents are to be written encrypted: as declared,
// or, where nothing is, as they were.
func (k *Keys) Encrypts(ctx context.Context) (bool, error) {
	if k.declared != nil {
		return k.policy().Encrypts(), nil
	}
	ring, err := k.keyRing(ctx)
	return err == nil && ring != nil && ring.Form != keyring.FormPlain, err
}

// Provide makes the key if there is none, wraps it as declared, and puts it
// where this machine's agents find it. secret is the key to use if there is
// none; nil: a new one.
func (k *Keys) Provide(ctx context.Context, secret []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		err := k.provideLocked(ctx, secret)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		k.forgetLocked() // another command was faster
	}
}

func (k *Keys) provideLocked(ctx context.Context, secret []byte) error {
	found, err := k.openLocked(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		found, err = k.make(secret)
	}
	if err != nil {
		return err
	}
	if err := k.wrapLocked(ctx, found); err != nil {
		return err
	}
	k.secrets = &found
	return k.handOut(found)
}

// make returns the given key, or a new one. A directory without encryption
// keeps it at once.
func (k *Keys) make(secret []byte) (state.Secrets, error) {
	if k.file != "" && !k.policy().Encrypts() {
		if _, err := store.CreateSecret(k.file, secret); err != nil {
			return state.Secrets{}, err
		}
		return store.LoadSecrets(k.file)
	}
	if secret == nil {
		secret = store.NewSecret()
	}
	return state.Secrets{Current: secret}, nil
}

// wrapLocked writes key.json unless it is as declared already. A directory
// without encryption has none.
func (k *Keys) wrapLocked(ctx context.Context, secrets state.Secrets) error {
	policy := k.policy()
	var ring *keyring.Keyring
	var err error
	switch {
	case k.Ring == nil && k.file != "" && !policy.Encrypts():
		return nil
	case k.Ring == nil:
		ring, err = keyring.Wrap(ctx, secrets.Current, policy, kmsServices())
	case k.declared == nil || k.Ring.Matches(policy):
		return nil
	case k.file != "" && !policy.Encrypts(): // back to a key that only its owner may read
		k.retired, k.Note = true, rewrapped(policy)
		return k.copyTo(k.file, secrets)
	default:
		ring, err = k.Ring.Rewrap(ctx, secrets, policy, kmsServices())
		k.Note = rewrapped(policy)
	}
	if err != nil {
		return err
	}
	return k.keepLocked(ctx, ring)
}

// keepLocked writes key.json in place of the one that was read.
func (k *Keys) keepLocked(ctx context.Context, ring *keyring.Keyring) error {
	data, err := ring.Encode()
	if err != nil {
		return err
	}
	generation, err := k.inner.Put(ctx, keyring.ObjectKey, data, k.generation)
	if err != nil {
		return fmt.Errorf("keep the stack's key: %w", err)
	}
	k.Ring, k.generation = ring, generation
	return nil
}

// rewrapped reports who may read from now on, and what that does not undo.
func rewrapped(p keyring.Policy) string {
	const before = "\nWho could open it before may have kept a copy, and older versions of key.json that the store keeps still open."
	switch {
	case p.KMSKey != "":
		return "The key of the state is wrapped by the KMS key " + p.KMSKey + " now." + before
	case len(p.Recipients) > 0:
		return fmt.Sprintf("The key of the state is wrapped for %d recipients now.%s", len(p.Recipients), before)
	}
	return "The state is not encrypted any more."
}

// Retire removes key.json of a directory whose state is not encrypted any more,
// once nothing needs it.
func (k *Keys) Retire(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.retired {
		return nil
	}
	return k.inner.Delete(ctx, keyring.ObjectKey)
}

// agentFile is where agents of this machine read the key.
func (k *Keys) agentFile() string {
	if k.file != "" {
		if _, err := os.Stat(k.file); err == nil || k.declared == nil {
			return k.file
		}
	}
	return k.cache
}

// handOut writes the keys where this machine's agents read them. That is a copy
// where they are in key.json, and follows it.
func (k *Keys) handOut(secrets state.Secrets) error {
	path := k.agentFile()
	if path == "" {
		return errors.New("find a place for the stack's key (set XDG_CONFIG_HOME or HOME)")
	}
	if path == k.file && k.Ring == nil {
		return nil // that is where they were read
	}
	return k.copyTo(path, secrets)
}

// copyTo writes a copy of the keys of key.json to a file, unless it is there. In the
// stack's own directory another key than an earlier one of the stack is left alone.
func (k *Keys) copyTo(path string, secrets state.Secrets) error {
	present, err := store.LoadSecrets(path)
	switch {
	case err == nil && sameSecrets(present, secrets):
		return nil
	case path == k.file && err == nil && !hasSecret(secrets, present.Current):
		return fmt.Errorf("%s holds another key than the stack's; move it away and run the command again", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return store.ReplaceSecrets(path, secrets)
}

// hasSecret reports whether a secret is the current or a former one.
func hasSecret(secrets state.Secrets, secret []byte) bool {
	return bytes.Equal(secrets.Current, secret) || slices.ContainsFunc(secrets.Former, func(former []byte) bool { return bytes.Equal(former, secret) })
}

func sameSecrets(a, b state.Secrets) bool {
	return bytes.Equal(a.Current, b.Current) && slices.EqualFunc(a.Former, b.Former, bytes.Equal)
}

// lazyKey opens the stack's key when the first secret is met.
type lazyKey func() (*state.Key, error)

func (k lazyKey) Seal(secret string) (string, error) {
	key, err := k()
	if err != nil {
		return "", err
	}
	return key.Seal(secret)
}

func (k lazyKey) Open(sealed string) (string, error) {
	key, err := k()
	if err != nil {
		return "", err
	}
	return key.Open(sealed)
}

var _ schema.Sealer = lazyKey(nil)

// Sealer returns what seals and opens the stack's secrets. With create a stack
// without a key gets one; otherwise one that is forgotten again: what it seals
// shows as changed, which is true.
func (s *Stack) Sealer(ctx context.Context, doc *state.Document, create bool) (schema.Sealer, error) {
	if err := s.keyFor(ctx, doc); err != nil {
		return nil, err
	}
	if create {
		if err := s.Keys.Provide(ctx, nil); err != nil {
			return nil, err
		}
	}
	forgotten := sync.OnceValues(store.NewKey)
	return lazyKey(func() (*state.Key, error) {
		secrets, err := s.Keys.Open(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			return forgotten()
		}
		if err != nil {
			return nil, err
		}
		return state.KeyOf(secrets)
	}), nil
}

// keyFor rejects to go on with a new key where the state needs the old one: all
// its secrets would show as changed, and nothing that runs could start again.
func (s *Stack) keyFor(ctx context.Context, doc *state.Document) error {
	if !doc.HasSecrets() {
		return nil
	}
	ring, err := s.Keys.keyRing(ctx)
	if err != nil || ring != nil {
		return err
	}
	missing := keyring.ObjectKey + " of " + s.Store.Location()
	if s.Keys.file != "" {
		if _, err := os.Stat(s.Keys.file); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		missing = s.Keys.file
	}
	return fmt.Errorf("the state has sealed values and %s, which opens them, is gone; put it back, or fray destroy and apply again with a new one", missing)
}
