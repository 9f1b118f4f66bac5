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
	"time"

	"github.com/fray-ml/fray/durable"
)

// Put writes an object whole if its present generation is want.
func (d *Dir) Put(ctx context.Context, key string, data []byte, want Generation) (Generation, error) {
	gen, err := d.put(ctx, key, data, want)
	if err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	return gen, nil
}

func (d *writer) put(ctx context.Context, key string, data []byte, want Generation) (Generation, error) {
	if err := cmp.Or(CheckKey(key), alive(ctx), d.prepare()); err != nil {
		return 0, err
	}
	for {
		gen, err := d.putLocked(ctx, write{key, data, want})
		if !errors.Is(err, errTicketLost) {
			return gen, err
		}
	}
}

// write is one of an object over the generation want.
type write struct {
	key  string
	data []byte
	want Generation
}

func (d *writer) putLocked(ctx context.Context, w write) (Generation, error) {
	lock, err := d.lock(ctx, w.key)
	if err != nil {
		return 0, err
	}
	defer lock.unlock()
	gen, named, err := d.replace(ctx, lock, w)
	for err != nil && !named && d.makeRoom(w.key, err) {
		gen, named, err = d.replace(ctx, lock, w)
	}
	d.prune(w.key)
	return gen, err
}

// replace writes a file in the place of the one that is there, and reports
// whether it has its name, also when that could not be made durable. The caller
// holds the key's lock.
func (d *writer) replace(ctx context.Context, lock *shardLock, w write) (gen Generation, named bool, err error) {
	tmp, err := lock.ticket(w.key)
	if err != nil {
		return 0, false, err
	}
	defer tmp.discard()
	present, err := d.generation(w.key)
	if err != nil {
		return 0, false, err
	}
	if w.want != Any && w.want != present {
		return 0, false, ErrConflict
	}
	gen = lock.next(present)
	d.keep(w.key, present)
	if _, err := tmp.Write(w.data); err != nil {
		return 0, false, fileError("write", d.path(w.key), err)
	}
	err = d.commit(ctx, tmp, gen)
	return gen, tmp.used, err
}

// Upload writes a blob if there is none under the key. The last part of a key
// below BundlesPrefix must be the content's SHA-256 in hex; other content is rejected.
func (d *Dir) Upload(ctx context.Context, key string, content io.Reader) error {
	if err := d.upload(ctx, key, content); err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	return nil
}

func (d *writer) upload(ctx context.Context, key string, content io.Reader) error {
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
	if err := lock.claim(tmp); err != nil {
		return err
	}
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

func (d *writer) remove(ctx context.Context, key string) error {
	if err := cmp.Or(CheckKey(key), alive(ctx)); err != nil {
		return err
	}
	if present, err := d.generation(key); err != nil || present == Absent {
		return err
	}
	if err := d.prepare(); err != nil {
		return err
	}
	err := errTicketLost
	for errors.Is(err, errTicketLost) {
		err = d.removeLocked(ctx, key)
	}
	return err
}

func (d *writer) removeLocked(ctx context.Context, key string) error {
	lock, err := d.lock(ctx, key)
	if err != nil {
		return err
	}
	defer lock.unlock()
	if err := lock.voidOthers(""); err != nil {
		return err
	}
	present, err := d.generation(key)
	if err != nil || present == Absent {
		return err
	}
	if err := lock.remember(present); err != nil {
		return err
	}
	d.keep(key, present)
	// A delete has no ticket, since on a full disk none could be made: one that is
	// suspended right here comes late, as if it had been asked for later.
	if !lock.names(lock.file) {
		return errTicketLost
	}
	if err := os.Remove(d.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
func (d tree) generation(key string) (Generation, error) {
	info, err := os.Lstat(d.path(key))
	switch {
	case notThere(err), err == nil && info.IsDir():
		return Absent, nil
	case err != nil:
		return 0, fileError("open", d.path(key), err)
	}
	return generationOf(info), nil
}

// commit gives a ticket its generation and its name, durably. The caller
// holds the key's lock.
func (d tree) commit(ctx context.Context, tmp *ticket, gen Generation) error {
	at := time.Unix(0, int64(gen))
	if err := os.Chtimes(tmp.path, at, at); err != nil {
		return tmp.fail("set time of", err)
	}
	if err := tmp.Sync(); err != nil {
		return fileError("sync", tmp.target, err)
	}
	if err := alive(ctx); err != nil { // syncing takes long; the lease may be lost by now
		return err
	}
	made, err := d.rename(tmp)
	if err != nil {
		return tmp.fail("write", err)
	}
	return d.syncFolders(filepath.Dir(tmp.target), made)
}

// rename makes the directories that the target needs. A Delete beside it may
// remove one again while it is still empty, hence the retries.
func (d tree) rename(tmp *ticket) (made bool, err error) {
	for range 100 {
		err = os.Rename(tmp.path, tmp.target)
		if err == nil {
			tmp.used = true
			return made, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return made, err
		}
		if _, gone := os.Lstat(tmp.path); gone != nil {
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
func (d tree) syncFolders(folder string, all bool) error {
	for {
		if err := durable.SyncDir(folder); err != nil {
			return fileError("sync", folder, err)
		}
		if !all || folder == d.root {
			return nil
		}
		folder = filepath.Dir(folder)
	}
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
