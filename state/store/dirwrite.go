package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Put writes an object whole if its present generation is want.
func (d *Dir) Put(ctx context.Context, key string, data []byte, want Generation) (Generation, error) {
	gen, err := d.put(ctx, key, data, want)
	if err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	return gen, nil
}

func (d *Dir) put(ctx context.Context, key string, data []byte, want Generation) (Generation, error) {
	if err := cmp.Or(CheckKey(key), alive(ctx), d.prepare()); err != nil {
		return 0, err
	}
	lock, err := d.lock(ctx, key)
	if err != nil {
		return 0, err
	}
	defer lock.unlock()
	present, err := d.generation(key)
	if err != nil {
		return 0, err
	}
	if want != Any && want != present {
		return 0, ErrConflict
	}
	gen := lock.next(present)
	d.keep(key, present)
	err = d.replace(ctx, key, data, gen)
	for err != nil && d.makeRoom(key, present, err) {
		err = d.replace(ctx, key, data, gen)
	}
	d.prune(key)
	return gen, err
}

// replace writes a file in the place of the one that is there. The caller holds
// the key's lock.
func (d *Dir) replace(ctx context.Context, key string, data []byte, gen Generation) error {
	tmp, err := d.stage(key)
	if err != nil {
		return err
	}
	defer tmp.discard()
	if _, err := tmp.Write(data); err != nil {
		return fileError("write", d.path(key), err)
	}
	return d.commit(ctx, tmp, gen)
}

// Upload writes a blob if there is none under the key. The last part of a key
// below BundlesPrefix must be the content's SHA-256 in hex; other content is refused.
func (d *Dir) Upload(ctx context.Context, key string, content io.Reader) error {
	if err := d.upload(ctx, key, content); err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	return nil
}

func (d *Dir) upload(ctx context.Context, key string, content io.Reader) error {
	if err := cmp.Or(CheckKey(key), alive(ctx)); err != nil {
		return err
	}
	if present, err := d.generation(key); err != nil || present != Absent {
		return err
	}
	if err := d.prepare(); err != nil {
		return err
	}
	tmp, err := d.stage(key)
	if err != nil {
		return err
	}
	defer tmp.discard()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(tmp, sum), contextReader{ctx, content}); err != nil {
		return fileError("write", d.path(key), err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); strings.HasPrefix(key, BundlesPrefix) && got != path.Base(key) {
		return fmt.Errorf("the content's SHA-256 is %s: it changed while it was read, or the key is wrong", got)
	}
	if err := tmp.Sync(); err != nil { // the long part, before the lock
		return fileError("sync", d.path(key), err)
	}
	lock, err := d.lock(ctx, key)
	if err != nil {
		return err
	}
	defer lock.unlock()
	if present, err := d.generation(key); err != nil || present != Absent {
		return err
	}
	return d.commit(ctx, tmp, lock.next(Absent))
}

// Delete removes an object, and the directories that it leaves empty. It is
// not synced: after a power failure the object may be there again.
func (d *Dir) Delete(ctx context.Context, key string) error {
	if err := d.remove(ctx, key); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

func (d *Dir) remove(ctx context.Context, key string) error {
	if err := cmp.Or(CheckKey(key), alive(ctx)); err != nil {
		return err
	}
	if present, err := d.generation(key); err != nil || present == Absent {
		return err
	}
	if err := d.prepare(); err != nil {
		return err
	}
	lock, err := d.lock(ctx, key)
	if err != nil {
		return err
	}
	defer lock.unlock()
	present, err := d.generation(key)
	if err != nil || present == Absent {
		return err
	}
	if err := lock.remember(present); err != nil {
		return err
	}
	d.keep(key, present)
	if err := os.Remove(d.path(key)); err != nil {
		return fileError("delete", d.path(key), err)
	}
	for folder := filepath.Dir(d.path(key)); folder != d.root; folder = filepath.Dir(folder) {
		if os.Remove(folder) != nil {
			break // in use
		}
	}
	return nil
}

// generation is that of the object now, Absent if there is none.
func (d *Dir) generation(key string) (Generation, error) {
	info, err := os.Lstat(d.path(key))
	switch {
	case notThere(err), err == nil && info.IsDir():
		return Absent, nil
	case err != nil:
		return 0, fileError("open", d.path(key), err)
	}
	return generationOf(info), nil
}

// staged is a file on its way to its name.
type staged struct {
	*os.File
	target string
	named  bool
}

func (d *Dir) stage(key string) (*staged, error) {
	f, err := os.CreateTemp(d.tmp(), "*")
	if err != nil {
		return nil, fileError("write", d.path(key), err)
	}
	return &staged{File: f, target: d.path(key)}, nil
}

// discard frees what a file that did not get its name occupies.
func (s *staged) discard() {
	_ = s.Close()
	if !s.named {
		_ = os.Remove(s.Name())
	}
}

// commit gives a staged file its generation and its name, durably. The caller
// holds the key's lock.
func (d *Dir) commit(ctx context.Context, tmp *staged, gen Generation) error {
	at := time.Unix(0, int64(gen))
	if err := os.Chtimes(tmp.Name(), at, at); err != nil {
		return fileError("set time of", tmp.target, err)
	}
	if err := tmp.Sync(); err != nil {
		return fileError("sync", tmp.target, err)
	}
	if err := alive(ctx); err != nil { // syncing takes long; the lease may be lost by now
		return err
	}
	made, err := d.rename(tmp)
	if err != nil {
		return fileError("write", tmp.target, err)
	}
	return d.syncFolders(filepath.Dir(tmp.target), made)
}

// rename makes the directories that the target needs. A Delete beside it may
// remove one again while it is still empty, hence the retries.
func (d *Dir) rename(tmp *staged) (made bool, err error) {
	for range 100 {
		err = os.Rename(tmp.Name(), tmp.target)
		if err == nil {
			tmp.named = true
			return made, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return made, err
		}
		if _, gone := os.Lstat(tmp.Name()); gone != nil {
			return made, err
		}
		made = true
		folder := filepath.Dir(tmp.target)
		// A delete beside this may take a directory away while it is being
		// made: MkdirAll then finds that it exists, and a moment later that it
		// is no directory.
		err := os.MkdirAll(folder, folderMode)
		vanished := errors.Is(err, fs.ErrExist) && !isFile(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !vanished {
			return made, err
		}
	}
	return made, err
}

// isFile reports whether a path, or a part of it, is there and no directory.
func isFile(path string) bool {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil {
			return !info.IsDir()
		}
	}
	return false
}

// syncFolders makes a renamed file's name durable, and with all those of the
// directories above it up to the root.
func (d *Dir) syncFolders(folder string, all bool) error {
	for {
		if err := syncFolder(folder); err != nil {
			return fileError("sync", folder, err)
		}
		if !all || folder == d.root {
			return nil
		}
		folder = filepath.Dir(folder)
	}
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // this file system syncs names by itself or not at all
	}
	return err
}

// contextReader ends a copy when its context does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := alive(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
