package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fray-ml/fray/filelock"
)

// lock takes the lock of a name, a slice's as a rule: the right to change it.
// The process that removes the slice removes the lock's file, so that a file which was
// waited for may be out of date.
func (p *Provider) lock(ctx context.Context, name string) (*hold, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		held, err := p.tryLock(name)
		if !errors.Is(err, filelock.ErrHeld) {
			return held, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock of %s: %w", name, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// tryLock takes the lock of a name, or returns filelock.ErrHeld.
func (p *Provider) tryLock(name string) (*hold, error) {
	path := p.lockPath(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return p.takeFrom(path)
}

func (p *Provider) lockPath(name string) string {
	return filepath.Join(p.config.Root, "locks", name+".lock")
}
