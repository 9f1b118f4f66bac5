package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/local"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// stack is one configuration's store, with what is needed to act on it.
type stack struct {
	site
	root  string // what this machine keeps of the stack, absolute; the store itself unless that is in a bucket
	at    location
	store store.Store
	keys  *keys
	fresh bool           // nothing was applied there yet
	hosts *hostBootstrap // see bootstrap

	clock   *store.LeaderClock
	signing sync.Once
	command *clusterkeys.Command // once signing was done, see signer
}

// openStack finds the store of a site. With create it is made if it is not
// there; without, a missing one gives a fresh stack that touches nothing.
// Workspaces other than the default one must be there.
func openStack(ctx context.Context, where site, create bool) (*stack, error) {
	at, err := where.location()
	if err != nil {
		return nil, err
	}
	st := &stack{site: where, at: at, root: where.root(at)}
	opened, err := st.open(ctx, create)
	if err != nil {
		return nil, err
	}
	st.keys = newKeys(opened, st, where.settings.Encryption)
	st.store = st.keys.store()
	st.clock = store.NewLeaderClock(st.store)
	return st, nil
}

// open opens the store as it is.
func (s *stack) open(ctx context.Context, create bool) (store.Store, error) {
	switch {
	case !s.isDefault():
		return s.openWorkspace(ctx, s.at)
	case create:
		return s.at.create(ctx)
	case s.at.inBucket():
		return s.at.open(ctx)
	}
	_, err := os.Stat(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		s.fresh = true
		return noStore{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	return s.at.open(ctx)
}

// load reads the state; a stack that was never applied has an empty one.
func (s *stack) load(ctx context.Context) (*state.Document, error) {
	if s.fresh && !s.at.inBucket() {
		return &state.Document{FormatVersion: state.FormatVersion, Lineage: "unborn"}, nil
	}
	doc, generation, err := apply.LoadState(ctx, s.store)
	if err != nil {
		return nil, err
	}
	s.fresh = generation == store.Absent && s.at.inBucket()
	return doc, nil
}

// place names the directory where this machine's slices of the stack are: of a
// state in a bucket the machine and the directory, of one in a directory what
// that and its copies are known by; "" where that is not recorded yet.
func (s *stack) place() string {
	if placed, ok := store.AsPlaced(s.store); ok {
		made, _, err := placed.Place()
		if err != nil || made.ID == "" {
			return ""
		}
		return made.Path + placeMark + made.ID
	}
	if !s.at.inBucket() {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + s.root
}

// placeMark stands between the path of a place and what it is known by. A
// directory that was moved is known by the same.
const placeMark = "#"

func samePlace(a, b string) bool {
	_, markA, _ := strings.Cut(a, placeMark)
	_, markB, _ := strings.Cut(b, placeMark)
	return a == b || markA != "" && markA == markB
}

// here refuses a state whose local slices are on another machine, or in another
// directory that this one is a copy of: seen from here they would all be gone,
// and be made again beside the running ones, or be ended from here.
func (s *stack) here(doc *state.Document) error {
	if err := store.CheckPlace(s.store); err != nil {
		return err
	}
	if doc.LocalPlace == "" || samePlace(doc.LocalPlace, s.place()) {
		return nil
	}
	made, _, _ := strings.Cut(doc.LocalPlace, placeMark)
	for name, slice := range doc.Slices {
		if slice.Spec.Provider == schema.ProviderLocal {
			return fmt.Errorf("the stack in %s has slices of provider \"local\" (%s and others) in %s; run fray there, or run fray destroy there before you go on here",
				s.store.Location(), name, made)
		}
	}
	return nil
}

// providers are the sources of capacity that are declared, or that the state knows
// of where nothing is. What doc says is on another machine cannot be asked.
func (s *stack) providers(ctx context.Context, declared []schema.Provider, doc *state.Document) (map[schema.ProviderName]providers.Provider, error) {
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
		StoreLocation: string(s.at),
		KeyFile:       s.keys.agentFile(),
		WorkDir:       s.dir,
		CacheDir:      cache,
		Workspace:     s.workspace,
	})
	if err != nil {
		return nil, err
	}
	all := map[schema.ProviderName]providers.Provider{schema.ProviderLocal: p}
	if doc != nil {
		if err := s.here(doc); err != nil {
			all[schema.ProviderLocal] = elsewhere{err}
		}
	}
	cloud, err := s.google(ctx, declared, doc)
	if err != nil {
		return nil, err
	}
	if cloud != nil {
		all[schema.ProviderGCP] = cloud
	}
	return all, nil
}

// elsewhere is a provider that cannot be asked from this machine.
type elsewhere struct{ why error }

func (e elsewhere) Inventory(context.Context, string) (schema.Inventory, error) {
	return schema.Inventory{}, e.why
}
func (e elsewhere) Get(context.Context, schema.SliceSpec) (schema.SliceStatus, bool, error) {
	return schema.SliceStatus{}, false, e.why
}
func (e elsewhere) Create(context.Context, schema.SliceSpec) error { return e.why }
func (e elsewhere) Delete(context.Context, schema.SliceSpec) error { return e.why }

var _ providers.Provider = elsewhere{}

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
	held, err := store.Acquire(ctx, s.store, store.LeaseConfig{
		Command: commandLine(), Wait: wait, MinEpoch: doc.Epoch,
	})
	return held, s.naming(err)
}

// naming adds the workspace to an error that speaks of the stack.
func (s *stack) naming(err error) error {
	if _, held := errors.AsType[*store.HeldError](err); held && !s.isDefault() {
		return fmt.Errorf("workspace %q: %w", s.workspace, err)
	}
	return err
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
