package testruns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/providers/local"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

// testSite is the directory of one fray test, with a stack for each
// configuration that its files apply. Its lock is held while fray test lives, so
// that a later one finds what a killed one left.
type testSite struct {
	dir  string
	lock *os.File
}

const testLock = "test.lock"

// newTestSite makes a directory, and removes those of the dead.
func newTestSite(ctx context.Context, a *terminal.Terminal) (*testSite, error) {
	cache, err := release.CacheDir()
	if err != nil {
		return nil, err
	}
	all := filepath.Join(cache, "test")
	if err := os.MkdirAll(all, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for tests: %w", err)
	}
	if err := sweepTests(ctx, a, all); err != nil {
		return nil, err
	}
	s := &testSite{}
	for range 10 { // another fray test that starts now may take it for one of the dead
		if s.dir, err = os.MkdirTemp(all, ""); err != nil {
			break
		}
		if s.lock, err = lockTest(s.dir); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("make a directory for tests: %w", err)
}

// lockTest takes the lock of a directory, if it is free.
func lockTest(dir string) (*os.File, error) {
	return filelock.Take(filepath.Join(dir, testLock))
}

// sweepTests takes down what killed processes left.
func sweepTests(ctx context.Context, a *terminal.Terminal, all string) error {
	entries, err := os.ReadDir(all)
	if err != nil {
		return fmt.Errorf("find what earlier tests left: %w", err)
	}
	for _, e := range entries {
		left := &testSite{dir: filepath.Join(all, e.Name())}
		if left.lock, err = lockTest(left.dir); err != nil {
			continue // another process is testing, or has just removed it
		}
		found, err := left.takeDown(ctx)
		if err == nil {
			err = left.remove()
		}
		if err != nil {
			return fmt.Errorf("take down what an earlier fray test left: %w", err)
		}
		if found > 0 {
			a.Warn(fmt.Sprintf("an earlier fray test was killed; took down its slices: %d", found))
		}
	}
	return nil
}

// stack is where a stack of a file is: of a configuration, named by the file's
// number and its own.
func (s *testSite) stack(dir, file string, n int) stack.Site {
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%d", file, n))
	return stack.Site{
		Dir: dir, Workspace: schema.DefaultWorkspace,
		Settings: schema.Settings{Backend: schema.Backend{Kind: schema.BackendLocal, Path: path}},
	}
}

// takeDown ends whatever is up in the directory, and returns how many slices
// that were.
func (s *testSite) takeDown(ctx context.Context) (int, error) {
	stacks, err := filepath.Glob(filepath.Join(s.dir, "*-*"))
	if err != nil {
		return 0, err
	}
	found := 0
	for _, dir := range stacks {
		n, err := takeDownSlices(ctx, dir)
		found += n
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// takeDownPatience bounds the wait for tasks that use all their grace.
const takeDownPatience = time.Minute

// takeDownSlices deletes the slices of a stack on this machine whatever its
// state records, and waits until they are gone.
func takeDownSlices(ctx context.Context, root string) (int, error) {
	p, err := local.New(local.Config{Root: filepath.Join(root, "local"), StoreLocation: root})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, takeDownPatience)
	defer cancel()
	found := 0
	for {
		inventory, err := p.Inventory(ctx, "")
		if err != nil || len(inventory.Slices) == 0 {
			return found, err
		}
		found = max(found, len(inventory.Slices))
		for i := range inventory.Slices {
			spec := &inventory.Slices[i].Spec
			if err := p.Delete(ctx, *spec); err != nil {
				return found, err
			}
		}
		if !sleep.For(ctx, 50*time.Millisecond) {
			return found, fmt.Errorf("slices of tests are still there: %w", context.Cause(ctx))
		}
	}
}

// remove removes the directory. Agents that are still there end when it is gone.
func (s *testSite) remove() error {
	defer s.lock.Close()
	going := s.dir + ".gone"
	if err := os.Rename(s.dir, going); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the directory of tests: %w", err)
	}
	var err error
	for range 20 { // an agent that ends may write a last file
		if err = os.RemoveAll(going); err == nil {
			return nil
		}
		<-time.After(20 * time.Millisecond)
	}
	return fmt.Errorf("remove the directory of tests: %w; the next fray test tries again", err)
}
