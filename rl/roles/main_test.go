package roles_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/state/store"
)

// childVariable has a child's orders; without it the process is the test.
const childVariable = "FRAY_TEST_RL_ROLES"

// childOrders are what a child does.
type childOrders struct {
	Document string // the run's configuration
	Roles    []string
	DieAt    int64 // the step of its journals before which it dies; 0: never
}

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := serveChild(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveChild hosts roles until their run has ended. It prints where they are, and reads where the others are.
func serveChild(text string) error {
	var o childOrders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	cfg, err := config.Read([]byte(o.Document))
	if err != nil {
		return err
	}
	parts, err := roles.ParseParts(o.Roles, cfg)
	if err != nil {
		return err
	}
	names, err := resolver.NewLocal(nil)
	if err != nil {
		return err
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel() // the test has ended
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var actors []resolver.Endpoint
			if err := json.Unmarshal(lines.Bytes(), &actors); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			for _, actor := range actors {
				names.Set(actor.Name, actor)
			}
		}
	}()
	journals := &files{dir: filepath.Join(cfg.Out, "store"), dieAt: o.DieAt}
	return roles.Serve(ctx, parts, cfg, roles.Environment{
		Client: client, Out: io.Discard, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Store: func(context.Context, string) (store.Store, error) { return journals, nil },
		Ready: func(actors []resolver.Endpoint) {
			for _, actor := range actors {
				names.Set(actor.Name, actor)
			}
			_ = json.NewEncoder(os.Stdout).Encode(actors)
		},
	})
}

// files are a store whose process dies at one of its steps: before or after a write. They outlive the process, not the
// machine.
type files struct {
	store.Store // what journals do not use
	dir         string
	dieAt       int64
	steps       atomic.Int64
}

func (f *files) step() {
	if f.steps.Add(1) == f.dieAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

func (f *files) path(key string) string {
	return filepath.Join(f.dir, strings.ReplaceAll(key, "/", "+"))
}

func (f *files) Location() string { return f.dir }

func (f *files) Get(_ context.Context, key string) (store.Object, error) {
	data, err := os.ReadFile(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		err = store.ErrNotFound
	}
	return store.Object{Attrs: store.Attrs{Key: key}, Data: data}, err
}

func (f *files) Put(_ context.Context, key string, data []byte, _ store.Generation) (store.Generation, error) {
	f.step()
	defer f.step()
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return 0, err
	}
	half := fmt.Sprintf("%s.%d.half", f.path(key), os.Getpid())
	if err := os.WriteFile(half, data, 0o600); err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(half) }()
	if err := os.Link(half, f.path(key)); errors.Is(err, fs.ErrExist) {
		return 0, store.ErrConflict
	} else if err != nil {
		return 0, err
	}
	return 1, nil
}

func (f *files) List(_ context.Context, prefixes ...string) ([]store.Attrs, error) {
	found, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []store.Attrs
	for _, entry := range found {
		key := strings.ReplaceAll(entry.Name(), "+", "/")
		if !strings.HasSuffix(key, ".half") && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			all = append(all, store.Attrs{Key: key})
		}
	}
	return all, nil
}

func (f *files) Delete(_ context.Context, key string) error {
	f.step()
	if err := os.Remove(f.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
