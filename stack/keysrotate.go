package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// The stack's key changes in three steps, each of which another process can take
// up where one died: a new key is kept beside the former one, which still opens
// (rotate); all that is sealed is sealed anew ([stack.reseal]); the former key is
// removed (settle).

// Rotate makes a new key, with which everything is sealed from then on.
func (k *Keys) Rotate(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	present, err := k.openLocked(ctx)
	if err != nil {
		return fmt.Errorf("make a new key: %w", err)
	}
	next := state.Secrets{Current: store.NewSecret(), Former: append([][]byte{present.Current}, present.Former...)}
	if err := k.replaceLocked(ctx, next); err != nil {
		return fmt.Errorf("make a new key: %w", err)
	}
	return nil
}

// Settle removes former keys. What they sealed cannot be opened from then on.
func (k *Keys) Settle(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	present, err := k.openLocked(ctx)
	if err == nil && len(present.Former) > 0 {
		err = k.replaceLocked(ctx, state.Secrets{Current: present.Current})
	}
	if err != nil {
		return fmt.Errorf("remove the former key: %w", err)
	}
	return nil
}

// replaceLocked keeps keys in place of those that were opened.
func (k *Keys) replaceLocked(ctx context.Context, next state.Secrets) error {
	if k.Ring == nil {
		if err := store.ReplaceSecrets(k.file, next); err != nil {
			return err
		}
	} else {
		policy := k.Ring.Policy()
		if k.declared != nil {
			policy = k.policy()
		}
		ring, err := k.Ring.Rewrap(ctx, next, policy, kmsServices())
		if err == nil {
			err = k.keepLocked(ctx, ring)
		}
		if err != nil {
			return err
		}
	}
	k.secrets = &next
	return k.handOut(next)
}

// rotating reports whether former keys are kept, so that some of what is sealed may
// be sealed with one.
func (k *Keys) rotating(ctx context.Context) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ring, err := k.ringLocked(ctx)
	if err != nil || ring != nil {
		return ring != nil && len(ring.Former) > 0, err
	}
	if k.file == "" {
		return false, nil
	}
	present, err := k.openLocked(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(present.Former) > 0, err
}

// key is what seals and opens, as the keys are now.
func (k *Keys) key(ctx context.Context) (*state.Key, error) {
	secrets, err := k.Open(ctx)
	if err != nil {
		return nil, err
	}
	return state.KeyOf(secrets)
}

// Refresh has the keys read anew at their next use.
func (k *Keys) Refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked()
}

func (k *Keys) forgetLocked() { k.read, k.Ring, k.secrets = false, nil, nil }

// Changed reports whether the stack's key is another one than this process has
// read and sealed with: `fray state rekey` came between.
func (k *Keys) Changed(ctx context.Context) (bool, error) {
	k.mu.Lock()
	looked, ring, secrets := k.read, k.Ring, k.secrets
	k.mu.Unlock()
	if !looked {
		return false, nil
	}
	now := &Keys{inner: k.inner, file: k.file, cache: k.cache, declared: k.declared}
	present, err := now.keyRing(ctx)
	switch {
	case err != nil:
		return false, err
	case present != nil:
		return ring != nil && (present.ID != ring.ID || !slices.Equal(present.Former, ring.Former)), nil
	case k.file == "" || secrets == nil:
		return false, nil
	}
	found, err := store.LoadSecrets(k.file)
	return err == nil && !sameSecrets(found, *secrets), err
}

var errKeyChanged = errors.New("the stack's key was changed by fray state rekey after this command had read it; nothing was done: run it again")

// CheckUnchanged is an errKeyChanged where changed.
func (k *Keys) CheckUnchanged(ctx context.Context) error {
	changed, err := k.Changed(ctx)
	if err == nil && changed {
		err = errKeyChanged
	}
	return err
}

// boxFor opens what a document is encrypted with, even where this process has read
// an earlier key than the one of now.
func (k *Keys) boxFor(ctx context.Context, data []byte) (*keyring.Box, error) {
	ring, err := k.keyRing(ctx)
	if err == nil && ring == nil {
		err = keyring.Locked(data)
	}
	if err != nil {
		return nil, err
	}
	if label, err := keyring.ReadLabel(data); err == nil && label.Key != ring.ID && !slices.Contains(ring.Former, label.Key) {
		k.Refresh()
	}
	return k.box(ctx)
}

// CheckOpenable returns why secrets of a document cannot be opened: it is from before a
// `fray state rekey`, whose former key is gone.
func (s *Stack) CheckOpenable(ctx context.Context, doc *state.Document) error {
	key, err := s.Keys.key(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, j := range doc.Jobs {
		if err = (schema.Desired{Jobs: []schema.Job{*j.Spec}}).CheckSealed(key); err != nil {
			break
		}
	}
	if err == nil {
		err = doc.Desired.CheckSealed(key)
	}
	for name, o := range doc.Outputs {
		if _, openErr := o.Secret.Reveal(key); err == nil && o.Sensitive && openErr != nil {
			err = fmt.Errorf("output %s: %w", name, openErr)
		}
	}
	if errors.Is(err, state.ErrOtherKey) {
		return fmt.Errorf("serial %d was sealed with a key that fray state rekey has replaced, and its secrets cannot be opened any more (%w); "+
			"apply the files as they were then instead", doc.Serial, err)
	}
	return err
}
