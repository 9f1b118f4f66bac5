package stack

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
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Stack is one configuration's store, with what is needed to act on it.
type Stack struct {
	Site
	Root  string // what this machine keeps of the stack, absolute; the store itself unless that is in a bucket
	At    Location
	Store store.Store
	Keys  *Keys
	Fresh bool           // nothing was applied there yet
	hosts *HostBootstrap // see bootstrap

	Clock   *store.LeaderClock
	signing sync.Once
	command *clusterkeys.Command // once signing was done, see signer
}

// Open finds the store of a site. With create it is made if it is not
// there; without, a missing one gives a fresh stack that touches nothing.
// Workspaces other than the default one must be there.
func Open(ctx context.Context, where Site, create bool) (*Stack, error) {
	at, err := where.Location()
	if err != nil {
		return nil, err
	}
	st := &Stack{Site: where, At: at, Root: where.root(at)}
	opened, err := st.open(ctx, create)
	if err != nil {
		return nil, err
	}
	st.Keys = NewKeys(opened, st, where.Settings.Encryption)
	st.Store = st.Keys.store()
	st.Clock = store.NewLeaderClock(st.Store)
	return st, nil
}

// open opens the store as it is.
func (s *Stack) open(ctx context.Context, create bool) (store.Store, error) {
	switch {
	case !s.IsDefault():
		return s.OpenWorkspace(ctx, s.At)
	case create:
		return s.At.create(ctx)
	case s.At.InBucket():
		return s.At.Open(ctx)
	}
	_, err := os.Stat(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		s.Fresh = true
		return noStore{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	return s.At.Open(ctx)
}

// Load reads the state; a stack that was never applied has an empty one.
func (s *Stack) Load(ctx context.Context) (*state.Document, error) {
	if s.Fresh && !s.At.InBucket() {
		return &state.Document{FormatVersion: state.FormatVersion, Lineage: "unborn"}, nil
	}
	doc, generation, err := apply.LoadState(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	s.Fresh = generation == store.Absent && s.At.InBucket()
	return doc, nil
}

// Place names the directory where this machine's slices of the stack are: of a
// state in a bucket the machine and the directory, of one in a directory what
// that and its copies are known by; "" where that is not recorded yet.
func (s *Stack) Place() string {
	if placed, ok := store.AsPlaced(s.Store); ok {
		made, _, err := placed.Place()
		if err != nil || made.ID == "" {
			return ""
		}
		return made.Path + placeMark + made.ID
	}
	if !s.At.InBucket() {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + s.Root
}

// placeMark stands between the path of a place and what it is known by. A
// directory that was moved is known by the same.
const placeMark = "#"

func samePlace(a, b string) bool {
	_, markA, _ := strings.Cut(a, placeMark)
	_, markB, _ := strings.Cut(b, placeMark)
	return a == b || markA != "" && markA == markB
}

// CheckHere rejects a state whose local slices are on another machine, or in another
// directory that this one is a copy of: seen from here they would all be gone,
// and be made again beside the running ones, or be ended from here.
func (s *Stack) CheckHere(doc *state.Document) error {
	if err := store.CheckPlace(s.Store); err != nil {
		return err
	}
	if doc.LocalPlace == "" || samePlace(doc.LocalPlace, s.Place()) {
		return nil
	}
	made, _, _ := strings.Cut(doc.LocalPlace, placeMark)
	for name, slice := range doc.Slices {
		if slice.Spec.Provider == schema.ProviderLocal {
			return fmt.Errorf("the stack in %s has slices of provider \"local\" (%s and others) in %s; run fray there, or run fray destroy there before you go on here",
				s.Store.Location(), name, made)
		}
	}
	return nil
}

// Providers are the sources of capacity that are declared, or that the state knows
// of where nothing is. What doc records as on another machine cannot be asked.
func (s *Stack) Providers(ctx context.Context, declared []schema.Provider, doc *state.Document) (map[schema.ProviderName]providers.Provider, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find fray's own program file: %w", err)
	}
	cache, err := release.CacheDir()
	if err != nil {
		return nil, err
	}
	p, err := local.New(local.Config{
		Root:          filepath.Join(s.Root, "local"),
		Executable:    executable,
		StoreLocation: string(s.At),
		KeyFile:       s.Keys.agentFile(),
		WorkDir:       s.Dir,
		CacheDir:      cache,
		Workspace:     s.Workspace,
	})
	if err != nil {
		return nil, err
	}
	all := map[schema.ProviderName]providers.Provider{schema.ProviderLocal: p}
	if doc != nil {
		if err := s.CheckHere(doc); err != nil {
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
	cluster, err := s.rayCluster(declared, doc)
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		all[schema.ProviderRay] = cluster
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

// Acquire takes the stack's lease, waiting up to wait for another holder to finish.
func (s *Stack) Acquire(ctx context.Context, doc *state.Document, wait time.Duration) (*store.Held, error) {
	held, err := store.Acquire(ctx, s.Store, leaseOf(store.LeaseConfig{Wait: wait, MinEpoch: doc.Epoch}))
	return held, s.WithWorkspace(err)
}

// WithWorkspace adds the workspace to an error that speaks of the stack.
func (s *Stack) WithWorkspace(err error) error {
	if _, held := errors.AsType[*store.HeldError](err); held && !s.IsDefault() {
		return fmt.Errorf("workspace %q: %w", s.Workspace, err)
	}
	return err
}
