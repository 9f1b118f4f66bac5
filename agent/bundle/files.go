package bundle

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Files are those of a bundle, each with a digest of what it is: its content, whether
// it can be executed, where it links to.
type Files map[string]string

// Difference is a file that two bundles do not have in common.
type Difference struct {
	Path   string
	Before bool // the first has a file of this path
	After  bool // the second has
}

// Differences are the files in which two bundles differ, by their paths.
func Differences(before, after Files) []Difference {
	var all []Difference
	for path, digest := range before {
		if other, ok := after[path]; other != digest {
			all = append(all, Difference{Path: path, Before: true, After: ok})
		}
	}
	for path := range maps.Keys(after) {
		if _, ok := before[path]; !ok {
			all = append(all, Difference{Path: path, After: true})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// maxCompared is how many bytes of a stored bundle are read to list its files: what is
// larger takes long to read from a bucket.
const maxCompared = 32 << 20

// FilesOf are the files that the bundle of a directory would have now.
func FilesOf(dir string) (Files, error) {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := usualPacker().archive(dir, w)
		_ = w.CloseWithError(err)
		packed <- err
	}()
	files, err := filesIn(r)
	_ = r.CloseWithError(err) // which ends the packing
	if packErr := <-packed; packErr != nil {
		err = packErr
	}
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", dir, err)
	}
	return files, nil
}

// StoredFiles are the files of a bundle in a store.
func StoredFiles(ctx context.Context, s store.Store, sum string) (Files, error) {
	parts, err := storedParts(ctx, s, sum)
	if err != nil {
		return nil, fmt.Errorf("list the files of bundle %.12s: %w", sum, err)
	}
	var size int64
	for _, p := range parts {
		size += p.Size
	}
	if size > maxCompared {
		return nil, fmt.Errorf("list the files of bundle %.12s: it has more than %s", sum, schema.Bytes(maxCompared))
	}
	blobs := make([]io.Reader, 0, len(parts))
	for _, p := range parts {
		blob, err := s.Open(ctx, store.BundleKey(p.Sum))
		if err != nil {
			return nil, fmt.Errorf("list the files of bundle %.12s: %w", sum, err)
		}
		defer blob.Close()
		blobs = append(blobs, blob)
	}
	z, err := zstd.NewReader(io.MultiReader(blobs...), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files, err := filesIn(z)
	if err != nil {
		return nil, fmt.Errorf("list the files of bundle %.12s: %w", sum, err)
	}
	return files, nil
}

// storedParts are the blobs of a bundle, in their order.
func storedParts(ctx context.Context, s store.Store, sum string) ([]Part, error) {
	if !isSum(sum) {
		return nil, fmt.Errorf("%q is no digest", sum)
	}
	found, err := s.List(ctx, store.BundleKey(sum))
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		if a.Key == store.BundleKey(sum) {
			return []Part{{Sum: sum, Size: a.Size}}, nil
		}
	}
	m, err := Fetcher{Store: s}.manifest(ctx, sum)
	return m.Parts, err
}

// filesIn reads the files of an archive.
func filesIn(r io.Reader) (Files, error) {
	files := Files{}
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// What follows the archive's end is read, so that its writer ends.
			_, err = io.Copy(io.Discard, r)
			return files, err
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		digest := sha256.New()
		fmt.Fprintf(digest, "%c %o %q\n", h.Typeflag, h.Mode&0o111, h.Linkname)
		if _, err := io.Copy(digest, archive); err != nil {
			return nil, err
		}
		files[h.Name] = hex.EncodeToString(digest.Sum(nil))
	}
}
