package bundle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/state/store"
)

// Fetcher fetches bundles from a store and unpacks them.
type Fetcher struct {
	Store store.Store
	// Keep is a directory for parts that are fetched but not unpacked yet; it
	// is made, and removed once the bundle is unpacked. What a fetch that was
	// interrupted has left there is checked and used. Required.
	Keep string
	// Workers is how many parts are fetched at a time; 0: 4.
	Workers int
}

// Fetch unpacks a bundle into a directory that is there and empty. No part is
// unpacked before it is here and has been checked; one that arrives damaged is
// fetched once more. After an error the directory may hold anything.
func (f Fetcher) Fetch(ctx context.Context, sum, dir string) error {
	if !isSum(sum) {
		return fmt.Errorf("%q is not a bundle's SHA-256", sum)
	}
	err := os.MkdirAll(f.Keep, 0o700)
	if err == nil {
		err = removePartial(f.Keep)
	}
	if err == nil {
		err = f.fetch(ctx, sum, dir)
	}
	switch {
	case isFull(err):
		return fmt.Errorf("fetch bundle %.12s: %w; free space on the file systems of %s and %s", sum, err, f.Keep, dir)
	case err != nil:
		return fmt.Errorf("fetch bundle %.12s: %w", sum, err)
	}
	return os.RemoveAll(f.Keep)
}

// removePartial removes what a fetch that was killed has left of parts; the names of
// whole ones begin with no dot.
func removePartial(keep string) error {
	found, err := filepath.Glob(filepath.Join(keep, ".*"))
	for _, path := range found {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// isFull reports whether there is no room for a file.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func (f Fetcher) fetch(ctx context.Context, sum, dir string) error {
	whole := Part{Sum: sum, Size: unknownSize}
	err := f.part(ctx, whole)
	if err == nil {
		content := newChain(f.Keep, []Part{whole})
		content.arrived(whole)
		defer content.close()
		return unpack(content, sum, dir)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	m, err := f.manifest(ctx, sum)
	if err != nil {
		return err
	}
	err = f.fetchParts(ctx, m, dir)
	if err != nil && f.makesUpAnother(m) {
		return fmt.Errorf("%w: each of its parts is whole, but together they are another bundle: %s is wrong; delete it and apply again",
			err, objectName(f.Store, indexKey(sum)))
	}
	return err
}

func (f Fetcher) manifest(ctx context.Context, sum string) (Manifest, error) {
	object, err := f.Store.Get(ctx, indexKey(sum))
	if errors.Is(err, store.ErrNotFound) {
		return Manifest{}, fmt.Errorf("it is not in the store %s; apply again to ship it", f.Store.Location())
	}
	if err != nil {
		return Manifest{}, err
	}
	m, err := decodeIndex(object.Data, sum)
	if err != nil {
		return Manifest{}, fmt.Errorf("%s is of no use: %w; delete it and apply again", objectName(f.Store, indexKey(sum)), err)
	}
	return m, nil
}

// fetchParts unpacks parts in their order while others are on their way.
func (f Fetcher) fetchParts(ctx context.Context, m Manifest, dir string) error {
	fetching := newGroup(ctx, make(chan struct{}, cmp.Or(f.Workers, usualWorkers)))
	content := newChain(f.Keep, m.Parts)
	defer content.close()
	content.ctx = fetching.ctx
	fetching.running.Go(func() {
		begun := map[string]bool{}
		for i, p := range m.Parts {
			if begun[p.Sum] {
				continue // the same files twice
			}
			begun[p.Sum] = true
			err := fetching.run(func(ctx context.Context) error {
				if err := f.part(ctx, p); errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("part %d of %d: %w; apply again to ship it", i+1, len(m.Parts), err)
				} else if err != nil {
					return fmt.Errorf("part %d of %d: %w", i+1, len(m.Parts), err)
				}
				content.arrived(p)
				return nil
			})
			if err != nil {
				return // wait returns why
			}
		}
	})
	err := unpack(content, m.Sum, dir)
	// If that failed, all parts are needed to find what is wrong, or next time.
	if failed := fetching.wait(); failed != nil {
		return failed
	}
	return err
}

// makesUpAnother reports whether all parts are here, and are not the bundle.
func (f Fetcher) makesUpAnother(m Manifest) bool {
	got := sha256.New()
	for _, p := range m.Parts {
		file, err := os.Open(filepath.Join(f.Keep, p.Sum))
		if err != nil {
			return false
		}
		_, err = io.Copy(got, file)
		file.Close()
		if err != nil {
			return false
		}
	}
	return hex.EncodeToString(got.Sum(nil)) != m.Sum
}

// unknownSize is that of a part which no index lists.
const unknownSize = math.MaxInt64 - 1

var errDamaged = errors.New("it is damaged")

// part makes sure that a part is here.
func (f Fetcher) part(ctx context.Context, p Part) error {
	if got, size, err := digest(filepath.Join(f.Keep, p.Sum)); err == nil && p.is(got, size) {
		return nil // from before
	}
	err := f.download(ctx, p)
	if errors.Is(err, errDamaged) && ctx.Err() == nil {
		err = f.download(ctx, p)
	}
	if errors.Is(err, errDamaged) {
		return fmt.Errorf("%s: fetched twice: %w; if it stays so, delete it and apply again",
			objectName(f.Store, store.BundleKey(p.Sum)), err)
	}
	return err
}

func (p Part) is(sum string, size int64) bool {
	return sum == p.Sum && (size == p.Size || p.Size == unknownSize)
}

// download fetches a part into a file of its name, which is on the disk by then.
func (f Fetcher) download(ctx context.Context, p Part) error {
	blob, err := f.Store.Open(ctx, store.BundleKey(p.Sum))
	if err != nil {
		return err
	}
	defer blob.Close()
	// Parts are fetched once each, and by one fetcher: the name is free.
	partial, err := durable.Create(filepath.Join(f.Keep, p.Sum), 0o600)
	if err != nil {
		return err
	}
	defer partial.Discard() // else it takes space until the next try
	sum := sha256.New()
	source := &source{ctx: ctx, r: io.LimitReader(blob, p.Size+1)} // more would not be the part
	size, err := io.Copy(io.MultiWriter(partial, sum), source)
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case source.err != nil:
		return fmt.Errorf("%w: %w", errDamaged, source.err)
	case err != nil:
		return err
	case !p.is(got, size):
		return fmt.Errorf("%w: its SHA-256 is %s, of %d bytes", errDamaged, got, size)
	}
	return partial.Commit()
}

// source reads until its context ends, and keeps its own errors apart from those of
// the destination.
type source struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
