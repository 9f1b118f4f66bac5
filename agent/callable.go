package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/state/store"
)

// maxCallable bounds a pickled callable, in bytes.
const maxCallable = 1 << 30

// prepareCallable makes the task's callable a file of this host, which is
// fetched once; nothing where the task has none.
func (t *task) prepareCallable(ctx context.Context) error {
	sum := t.run.Spec.Environment.Callable
	if sum == "" {
		return nil
	}
	file, err := t.agent.dir.callable(sum)
	if err != nil {
		return fmt.Errorf("prepare callable: %w", err)
	}
	if got, err := sumOf(file); err == nil && got == sum {
		return nil // from an earlier task
	}
	t.building()
	if err := fetchCallable(ctx, t.agent.Store, sum, file); err != nil {
		return fmt.Errorf("prepare callable %.12s: %w", sum, err)
	}
	return nil
}

// callable is the file of a callable on this host.
func (d *hostDir) callable(sum string) (string, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%q is not a SHA-256", sum)
	}
	return filepath.Join(d.file(callablesDir), sum), nil
}

// fetchCallable fetches a blob into a file, which is there only if it is what
// its name says. One that arrives damaged is fetched once more.
func fetchCallable(ctx context.Context, from store.Store, sum, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	damaged, err := fetchBlob(ctx, from, sum, file)
	if damaged && ctx.Err() == nil {
		damaged, err = fetchBlob(ctx, from, sum, file)
	}
	switch {
	case damaged:
		return fmt.Errorf("%s in %s was fetched twice and is damaged: %w; delete it and launch the job again",
			store.BundleKey(sum), from.Location(), err)
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("it is not in the store %s; launch the job again to upload it", from.Location())
	}
	return err
}

func fetchBlob(ctx context.Context, from store.Store, sum, file string) (damaged bool, err error) {
	blob, err := from.Open(ctx, store.BundleKey(sum))
	if err != nil {
		return false, err
	}
	defer blob.Close()
	temp, err := durable.Create(file, 0o600)
	if err != nil {
		return false, err
	}
	defer temp.Discard()
	got := sha256.New()
	size, err := io.Copy(io.MultiWriter(temp, got), io.LimitReader(blob, maxCallable+1))
	if err != nil {
		return false, err
	}
	if size > maxCallable {
		return false, fmt.Errorf("it has more than %d bytes, which is all a callable may have", maxCallable)
	}
	if is := hex.EncodeToString(got.Sum(nil)); is != sum {
		return true, fmt.Errorf("its SHA-256 is %s, of %d bytes", is, size)
	}
	return false, temp.Commit()
}

// sumOf is the SHA-256 of a file, in hex.
func sumOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
