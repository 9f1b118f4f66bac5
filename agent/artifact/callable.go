package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/tree"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/state/store"
)

// maxCallable bounds a pickled callable, in bytes.
const maxCallable = 1 << 30

// Callable makes a callable a file of this host, which is fetched once.
func (f Fetcher) Callable(ctx context.Context, sum string) error {
	file, err := callableFile(f.Dir, sum)
	if err != nil {
		return fmt.Errorf("prepare callable: %w", err)
	}
	if got, err := tree.Sum(file); err == nil && got == sum {
		return nil // from an earlier task
	}
	f.Building()
	if err := fetchCallable(ctx, f.Store, sum, file); err != nil {
		return fmt.Errorf("prepare callable %.12s: %w", sum, err)
	}
	return nil
}

// callableFile is the file of a callable on a host.
func callableFile(d *hostdir.Dir, sum string) (string, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%q is not a SHA-256", sum)
	}
	return filepath.Join(d.File(hostdir.CallablesDir), sum), nil
}

// fetchCallable fetches a blob into a file, which is there only if its
// content has the hash that is its name. One that arrives damaged is fetched once more.
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
