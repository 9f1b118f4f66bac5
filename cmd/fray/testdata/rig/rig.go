package stack

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// This file belongs to a program for tests, which rigged_test.go builds.

// crashes are the places where this process may be made to die: every store and
// provider call. Tests set FRAY_TEST_CRASH_AT to the number of one, and the process kills
// itself there with SIGKILL; with FRAY_TEST_CRASH_LOG each point that is passed
// is appended to that file. Without either variable the wrappers are not there.
// FRAY_TEST_LEASE_TTL is how long its lease lasts.
//
// A call has a point before and one after it. Repeated reads between two
// writes count once: dying at any of them leaves the same world.
type crashes struct {
	on       bool
	at       int64
	log      *os.File
	leaseTTL time.Duration

	passed  atomic.Int64
	mu      sync.Mutex
	reading bool // a read was counted since the last write
}

// rigged are the process's crash points. All stores and providers of a process
// must be wrapped by the same ones.
var rigged = crashesFromEnv()

func crashesFromEnv() *crashes {
	c := &crashes{at: -1}
	at, path, ttl := os.Getenv("FRAY_TEST_CRASH_AT"), os.Getenv("FRAY_TEST_CRASH_LOG"), os.Getenv("FRAY_TEST_LEASE_TTL")
	var err error
	if at != "" {
		c.on = true
		if c.at, err = strconv.ParseInt(at, 10, 64); err != nil {
			panic(err)
		}
	}
	if path != "" {
		c.on = true
		if c.log, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			panic(err)
		}
	}
	if ttl != "" {
		if c.leaseTTL, err = time.ParseDuration(ttl); err != nil {
			panic(err)
		}
	}
	return c
}

// Store wraps a store.
func (c *crashes) Store(s store.Store) store.Store {
	if !c.on {
		return s
	}
	return &crashStore{Store: s, c: c}
}

// Provider wraps a provider.
func (c *crashes) Provider(p providers.Provider) providers.Provider {
	if !c.on {
		return p
	}
	return &crashProvider{Provider: p, c: c}
}

func (c *crashes) write(name string, do func() error) error {
	c.mu.Lock()
	c.reading = false
	c.mu.Unlock()
	c.point("before " + name)
	err := do()
	c.point("after " + name)
	return err
}

func (c *crashes) read(name string) {
	c.mu.Lock()
	counted := c.reading
	c.reading = true
	c.mu.Unlock()
	if !counted {
		c.point("at " + name)
	}
}

func (c *crashes) point(name string) {
	n := c.passed.Add(1)
	if c.log != nil {
		_, _ = fmt.Fprintf(c.log, "%d %s\n", n, name)
	}
	if n == c.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; nothing may happen meanwhile
	}
}

type crashStore struct {
	store.Store
	c *crashes
}

// Unwrap lets what looks for more than a Store find the one behind.
func (s *crashStore) Unwrap() store.Store { return s.Store }

func (s *crashStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	var g store.Generation
	err := s.c.write("put "+key, func() (err error) {
		g, err = s.Store.Put(ctx, key, data, want)
		return err
	})
	return g, err
}

func (s *crashStore) Delete(ctx context.Context, key string) error {
	return s.c.write("delete "+key, func() error { return s.Store.Delete(ctx, key) })
}

func (s *crashStore) Upload(ctx context.Context, key string, content io.Reader) error {
	return s.c.write("upload "+key, func() error { return s.Store.Upload(ctx, key, content) })
}

func (s *crashStore) Get(ctx context.Context, key string) (store.Object, error) {
	s.c.read("get " + key)
	return s.Store.Get(ctx, key)
}

func (s *crashStore) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	s.c.read("list " + strings.Join(prefixes, " "))
	return s.Store.List(ctx, prefixes...)
}

type crashProvider struct {
	providers.Provider
	c *crashes
}

// Unwrap lets what looks for more than a Provider find the one behind.
func (p *crashProvider) Unwrap() providers.Provider { return p.Provider }

func (p *crashProvider) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	p.c.read("inventory")
	return p.Provider.Inventory(ctx, stack)
}

func (p *crashProvider) Get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	p.c.read("get slice " + spec.Name)
	return p.Provider.Get(ctx, spec)
}

func (p *crashProvider) Create(ctx context.Context, spec schema.SliceSpec) error {
	return p.c.write("create "+spec.Name, func() error { return p.Provider.Create(ctx, spec) })
}

func (p *crashProvider) Delete(ctx context.Context, spec schema.SliceSpec) error {
	return p.c.write("delete "+spec.Name, func() error { return p.Provider.Delete(ctx, spec) })
}

var (
	_ store.Store        = (*crashStore)(nil)
	_ providers.Provider = (*crashProvider)(nil)
)
