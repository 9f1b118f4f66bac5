package modules

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/schema"
)

// fetched is an archive that was brought here and unpacked.
type fetched struct {
	archive, files string // hashes
	dir            string // where it is unpacked, below the directory it was brought to
}

// fetch brings an archive into a directory and unpacks it there.
func fetch(ctx context.Context, from registry, file, tmp string) (fetched, error) {
	r, err := from.open(ctx, file)
	if err != nil {
		return fetched{}, err
	}
	defer r.Close()
	path := filepath.Join(tmp, "archive")
	sum, err := save(&interruptible{ctx, r}, path)
	if err != nil {
		return fetched{}, withRemedy(err)
	}
	f, err := unpackFile(path, file, filepath.Join(tmp, "files"))
	f.archive = sum
	return f, err
}

// save writes an archive to a file and returns its hash.
func save(r io.Reader, path string) (string, error) {
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	most := usualLimits().archive
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(r, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if n > most {
		return "", fmt.Errorf("it has more than %s, which is what an archive may have", schema.Bytes(most))
	}
	return hashed(sum.Sum(nil)), nil
}

// unpackFile unpacks the archive at path, whose name in the registry is file,
// into a directory that it makes.
func unpackFile(path, file, dir string) (fetched, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fetched{}, withRemedy(err)
	}
	r, err := os.Open(path)
	if err != nil {
		return fetched{}, err
	}
	defer r.Close()
	if err := unpack(r, file, dir, usualLimits()); err != nil {
		return fetched{}, fmt.Errorf("unpack %s: %w", file, err)
	}
	sum, err := filesHash(dir)
	return fetched{files: sum, dir: dir}, err
}

// interruptible is a reader that fails once its context has ended.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}
