package modules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/state/store"
)

// Registries opens the directories that archives are in.
type Registries struct {
	// Bucket opens "gs://BUCKET/PATH"; nil where there are no buckets.
	Bucket func(ctx context.Context, location string) (Bucket, error)
}

// Bucket is what is used of a store in a bucket.
type Bucket interface {
	List(ctx context.Context, prefixes ...string) ([]store.Attrs, error)
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Upload writes a file unless there is one already, which is no error.
	Upload(ctx context.Context, key string, content io.Reader) error
}

// registry is a directory of archives.
type registry interface {
	// list returns the names of files that begin with prefix.
	list(ctx context.Context, prefix string) ([]string, error)
	open(ctx context.Context, file string) (io.ReadCloser, error)
	// create writes a file whole, unless there is one already, which is no error.
	create(ctx context.Context, file string, content io.Reader) error
}

var (
	_ registry = bucketRegistry{}
	_ registry = directory("")
)

func (r Registries) open(ctx context.Context, src Source) (registry, error) {
	if dir, ok := strings.CutPrefix(src.Registry, directoryScheme); ok {
		return directory(dir), nil
	}
	if r.Bucket == nil {
		return nil, fmt.Errorf("open %s: there are no buckets here", src.Registry)
	}
	b, err := r.Bucket(ctx, src.Registry)
	return bucketRegistry{b}, err
}

type bucketRegistry struct{ bucket Bucket }

func (r bucketRegistry) list(ctx context.Context, prefix string) ([]string, error) {
	found, err := r.bucket.List(ctx, prefix)
	var names []string
	for _, attrs := range found {
		if !strings.Contains(attrs.Key, "/") {
			names = append(names, attrs.Key)
		}
	}
	return names, err
}

func (r bucketRegistry) open(ctx context.Context, file string) (io.ReadCloser, error) {
	return r.bucket.Open(ctx, file)
}

func (r bucketRegistry) create(ctx context.Context, file string, content io.Reader) error {
	return r.bucket.Upload(ctx, file, content)
}

// directory is a registry on a file system, which others may share.
type directory string

func (d directory) list(_ context.Context, prefix string) ([]string, error) {
	entries, err := os.ReadDir(string(d)) // also where it is shared, one read
	if err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d directory) open(_ context.Context, file string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(d), file))
}

// create makes the file under another name first and then links it, which
// fails where there is one: so no reader sees a part of it, and no write replaces it.
func (d directory) create(_ context.Context, file string, content io.Reader) error {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(string(d), ".publishing-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = io.Copy(tmp, content)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err != nil {
		return withRemedy(err)
	}
	err = os.Link(tmp.Name(), filepath.Join(string(d), file))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncDir(string(d))
}

// withRemedy adds what to do about an error of a file system, where the error does not
// have that.
func withRemedy(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w; nothing is left of it: free space and run the command again", err)
	}
	return err
}
