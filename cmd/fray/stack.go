package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/local"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// stack is one configuration's store, with what is needed to act on it.
type stack struct {
	dir   string // of the configuration, absolute
	root  string // of the store, absolute
	store store.Store
	fresh bool // there is no store yet

	crashes *apply.Crashes
}

// openStack finds the store of a configuration. With create it is made if it is
// not there; without, a missing one gives a fresh stack that touches nothing.
func openStack(dir string, backend schema.Backend, create bool) (*stack, error) {
	root := backend.Path
	if root == "" {
		root = ".fray"
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	st := &stack{dir: dir, root: root}
	_, err := os.Stat(root)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist) && !create:
		st.fresh = true
		return st, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	opened, err := open(root, create)
	if err != nil {
		return nil, err
	}
	if st.crashes, err = apply.CrashesFromEnv(); err != nil {
		return nil, err
	}
	st.store = st.crashes.Store(opened)
	return st, nil
}

func open(root string, create bool) (*store.Dir, error) {
	if !create {
		return store.OpenDir(root)
	}
	d, err := store.CreateDir(root)
	if err != nil {
		return nil, err
	}
	// The state holds no secrets in clear, but it is nothing for a repository.
	ignore := filepath.Join(root, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
			return nil, fmt.Errorf("write %s: %w", ignore, err)
		}
	}
	return d, nil
}

// load reads the state; a fresh stack has an empty one.
func (s *stack) load(ctx context.Context) (*state.Document, error) {
	if s.fresh {
		return &state.Document{FormatVersion: state.FormatVersion, Lineage: "unborn"}, nil
	}
	doc, _, err := apply.LoadState(ctx, s.store)
	return doc, err
}

func (s *stack) keyPath() string { return filepath.Join(s.root, "secret.key") }

// sealer returns the stack's key. Without create, a stack that has none yet
// gets one that is forgotten again: what it seals shows as changed, which is true.
func (s *stack) sealer(create bool) (schema.Sealer, error) {
	if create {
		return store.LoadOrCreateKey(s.keyPath())
	}
	key, err := store.LoadKey(s.keyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return store.NewKey()
	}
	return key, err
}

// keyFor refuses to go on with a new key where the state needs the old one: all
// its secrets would show as changed, and nothing that runs could start again.
func (s *stack) keyFor(doc *state.Document) error {
	_, err := os.Stat(s.keyPath())
	if !errors.Is(err, fs.ErrNotExist) || !doc.HasSecrets() {
		return nil
	}
	return fmt.Errorf("the state has sealed values and %s, which opens them, is gone; put it back, or fray destroy and apply again with a new one", s.keyPath())
}

// providers are the sources of capacity that this build has.
func (s *stack) providers() (map[schema.ProviderName]providers.Provider, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find fray's own program file: %w", err)
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	p, err := local.New(local.Config{
		Root:          filepath.Join(s.root, "local"),
		Executable:    executable,
		StoreLocation: s.root,
		KeyFile:       s.keyPath(),
		WorkDir:       s.dir,
		CacheDir:      cache,
	})
	if err != nil {
		return nil, err
	}
	return map[schema.ProviderName]providers.Provider{schema.ProviderLocal: s.crashes.Provider(p)}, nil
}

// cacheDir is where environments are kept warm for all stacks of this user.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory (set XDG_CACHE_HOME or HOME): %w", err)
	}
	return filepath.Join(base, "fray"), nil
}

// acquire takes the stack's lease, waiting up to wait for somebody else to be done.
func (s *stack) acquire(ctx context.Context, doc *state.Document, wait time.Duration) (*store.Held, error) {
	return store.Acquire(ctx, s.store, store.LeaseConfig{
		Command: commandLine(), Wait: wait, MinEpoch: doc.Epoch,
	})
}

// commandLine is this process for those who find the lease taken: program and
// verb, without values that might be secret.
func commandLine() string {
	words := []string{"fray"}
	for _, w := range os.Args[1:] {
		if strings.HasPrefix(w, "-") {
			break
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}
