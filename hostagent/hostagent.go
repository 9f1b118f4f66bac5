package hostagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// Run serves the host that args name. Of base it takes what they cannot give.
func Run(ctx context.Context, a *terminal.Terminal, args agent.Args, base agent.Config) error {
	s, err := base.Store, error(nil)
	if s == nil {
		s, err = stack.Location(args.Store).Open(ctx)
	}
	if err != nil {
		return err
	}
	if err := checkPlace(s, args.Shared); err != nil {
		return err
	}
	cfg := args.Config()
	cfg.Store, cfg.Sealer, cfg.Notices, cfg.RegistryToken = s, base.Sealer, base.Notices, base.RegistryToken
	if cfg.Sealer == nil {
		cfg.Sealer = storedKey(ctx, s)
	}
	if key, is := cfg.Sealer.(*hostKey); is {
		key.warm()
	}
	cfg.Follow = func(ctx context.Context, to string) ([]string, error) {
		there, err := stack.Location(to).Open(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := there.Get(ctx, store.HostKey(args.Slice, args.Host)); err != nil {
			return nil, err
		}
		args.Store = to
		return append([]string{"agent"}, args.Flags()...), nil
	}
	cfg.Version = release.Version()
	cfg.Log = slog.New(slog.NewTextHandler(a.Stderr, nil))
	return agent.Run(ctx, cfg)
}

// checkPlace rejects a store that is a copy. One in a directory that machines share was made on
// another machine as a rule.
func checkPlace(s store.Store, shared bool) error {
	err := store.CheckPlace(s)
	if at, ok := errors.AsType[*store.PlaceError](err); ok && shared && at.Standing == store.PlaceElsewhere {
		return nil
	}
	return err
}

// KeyFile is the stack's key in a file of this machine. A stack without secrets
// has none.
func KeyFile(path string) schema.Sealer {
	return &hostKey{read: func() (state.Secrets, error) { return store.LoadSecrets(path) }}
}

// storedKey is the stack's key as it is in the store, for machines that no user can
// hand a file to.
func storedKey(ctx context.Context, s store.Store) schema.Sealer {
	return &hostKey{read: func() (state.Secrets, error) {
		object, err := s.Get(ctx, keyring.ObjectKey)
		if err != nil {
			return state.Secrets{}, fmt.Errorf("read the stack's key: %w", err)
		}
		ring, err := keyring.Parse(object.Data)
		if err != nil {
			return state.Secrets{}, fmt.Errorf("%s in %s: %w", keyring.ObjectKey, s.Location(), err)
		}
		secrets, err := stack.OpenRing(ctx, ring)
		if err != nil {
			return state.Secrets{}, fmt.Errorf("open the stack's key on this host: %w", err)
		}
		return secrets, nil
	}}
}

// hostKey opens what is assigned to a host. It reads the key anew where what it
// knows does not open something, and keeps what it knew in memory: an assignment
// that was read before the stack got a new key is opened after that, too. A failure
// is not remembered: rights may yet be granted.
type hostKey struct {
	read func() (state.Secrets, error)

	mu    sync.Mutex
	key   *state.Key // nil: none was read
	known [][]byte   // all secrets that were read, newest first
}

// warm reads the key before anything that it may have to open. An error is for the
// first secret that is met.
func (k *hostKey) warm() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.readLocked()
}

func (k *hostKey) readLocked() error {
	secrets, err := k.read()
	if err != nil {
		return err
	}
	known := append([][]byte{secrets.Current}, secrets.Former...)
	for _, secret := range k.known {
		if !slices.ContainsFunc(known, func(other []byte) bool { return bytes.Equal(secret, other) }) {
			known = append(known, secret)
		}
	}
	key, err := state.KeyOf(state.Secrets{Current: known[0], Former: known[1:]})
	if err == nil {
		k.key, k.known = key, known
	}
	return err
}

func (k *hostKey) Seal(secret string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.readLocked(); err != nil {
		return "", err
	}
	return k.key.Seal(secret)
}

func (k *hostKey) Open(sealed string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		if secret, err := k.key.Open(sealed); !errors.Is(err, state.ErrOtherKey) {
			return secret, err
		}
	}
	if err := k.readLocked(); err != nil {
		return "", err
	}
	return k.key.Open(sealed)
}

var _ schema.Sealer = (*hostKey)(nil)
