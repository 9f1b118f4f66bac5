package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Hidden folders of a directory store. Keys cannot reach them.
const (
	tmpFolder     = ".tmp"      // files being written; renamed to their keys when whole
	lockFolder    = ".locks"    // one lock file per shard of the keys, one per lease holder
	versionFolder = ".versions" // what the state was before; see Versions
)

// What the store makes is its user's alone: logs may hold what others should not read.
const (
	fileMode   fs.FileMode = 0o600
	folderMode fs.FileMode = 0o700
)

// tmpAge is how old a file in tmpFolder must be to be a crashed writer's.
const tmpAge = time.Hour

// probeNanos is a modification time that only survives in full resolution.
const probeNanos = 123_456_789

// Dir is a Store in a directory of this machine: every key is a file's path
// below it.
//
// A write goes to a temporary file that is synced and then renamed to its
// place, under an advisory lock that all processes share, so that an object is
// always whole, whatever dies when. Reading takes no lock. An object's
// generation is its file's modification time in nanoseconds, which the writer
// sets and never lets fall; there are no side files and no caches. Where the
// file system does not keep nanoseconds, opening fails.
//
// The last versions of the state are kept: by a hard link, made before the
// rename, so that it costs no copy and no moment without a state.
//
// Two keys that differ only in case are one on a file system that thinks so.
//
// It is built of parts that hold the part below: tree reads, history keeps old versions,
// and writer changes objects under locks.
type Dir struct{ writer }

// tree is the files of a store; it reads them, and gives new ones their names.
type tree struct {
	root string // absolute
}

// writer changes a tree.
type writer struct {
	history

	shards [shardCount]chan struct{} // in-process part of each shard's lock

	mu    sync.Mutex
	ready bool // folders are there and the file system has been probed
}

var (
	_ Store   = (*Dir)(nil)
	_ Witness = (*Dir)(nil)
)

// CreateDir opens the store in a directory, which it makes when it is not there.
func CreateDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, folderMode); err != nil {
		return nil, fmt.Errorf("create store: %w", fileError("make directory", path, err))
	}
	d, err := newDir(path)
	if err != nil {
		return nil, fmt.Errorf("create store: %w", err)
	}
	if err := d.prepare(); err != nil {
		return nil, fmt.Errorf("create store: %w", err)
	}
	made, standing, err := d.Place()
	if err == nil && standing == PlaceNew && made.ID == "" {
		err = d.Settle(context.Background(), false)
	}
	if err != nil {
		return nil, fmt.Errorf("create store: %w", err)
	}
	return d, nil
}

// OpenDir opens the store in a directory that must be there; else the error is
// an fs.ErrNotExist. One that cannot be written to opens for reading.
func OpenDir(path string) (*Dir, error) {
	d, err := newDir(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	// Any other obstacle to writing is reported by the write.
	if err := d.prepare(); errors.Is(err, errCoarseTimes) {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return d, nil
}

func newDir(path string) (*Dir, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fileError("open", root, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open %s: it is a file, and the store needs a directory; move it away or name another place", root)
	}
	d := &Dir{}
	d.root = root
	for i := range d.shards {
		d.shards[i] = make(chan struct{}, 1)
	}
	return d, nil
}

// WriteInterval is 0: a directory takes writes as fast as they come.
func (d *Dir) WriteInterval() time.Duration { return 0 }

// Location is the absolute path of the directory.
func (d *Dir) Location() string { return d.root }

func (d tree) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

func (d tree) tmp() string { return filepath.Join(d.root, tmpFolder) }

func (d tree) locks() string { return filepath.Join(d.root, lockFolder) }

// prepare makes the hidden folders, probes the file system, and sweeps what
// crashed writers left; once. Every write needs it done.
func (d *writer) prepare() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready {
		return nil
	}
	for _, folder := range []string{d.tmp(), d.locks()} {
		if err := os.Mkdir(folder, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return fileError("make directory", folder, err)
		}
	}
	if err := d.probe(); err != nil {
		return err
	}
	d.sweep(time.Now())
	d.ready = true
	return nil
}

var errCoarseTimes = errors.New("its file system does not keep modification times to the nanosecond, which generations need; " +
	"put the store on another one (ext4, xfs, btrfs, zfs, tmpfs and APFS do)")

func (d *writer) probe() error {
	f, err := os.CreateTemp(d.tmp(), "probe-*")
	if err != nil {
		return fileError("write", d.tmp(), err)
	}
	defer func() {
		f.Close()
		_ = os.Remove(f.Name())
	}()
	set := time.Unix(time.Now().Unix(), probeNanos)
	if err := os.Chtimes(f.Name(), set, set); err != nil {
		return fileError("set time of", f.Name(), err)
	}
	info, err := f.Stat()
	if err != nil {
		return fileError("stat", f.Name(), err)
	}
	if !info.ModTime().Equal(set) {
		return fmt.Errorf("probe %s: %w", d.root, errCoarseTimes)
	}
	return nil
}

// sweep removes what writers and lease holders that died long ago left behind.
// What it cannot remove does no harm.
func (d *writer) sweep(now time.Time) {
	for _, path := range oldFiles(d.tmp(), now) {
		_ = os.Remove(path)
	}
	for _, path := range oldFiles(d.locks(), now) {
		if holder, ok := holderOf(filepath.Base(path)); ok && d.ended(holder) {
			_ = os.Remove(path)
		}
	}
}

func oldFiles(folder string, now time.Time) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var old []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > tmpAge {
			old = append(old, filepath.Join(folder, e.Name()))
		}
	}
	return old
}

// alive returns ctx's cause once it has ended.
func alive(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
