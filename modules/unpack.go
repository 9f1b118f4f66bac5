package modules

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/schema"
)

// limits bound what unpacking an archive may cost.
type limits struct {
	archive int64 // bytes of the archive
	files   int64 // bytes of all files in it
	entries int
}

// usualLimits have room for the code of a project beside a module's files.
func usualLimits() limits { return limits{archive: 256 << 20, files: 256 << 20, entries: 10_000} }

// maxWindow is how much memory a zstd archive may ask for; what `zstd` itself
// takes by default.
const maxWindow = 128 << 20

// unpacker writes the entries of one archive.
type unpacker struct {
	limits
	root *os.Root
	// seen are the paths that are there, by how a file system that ignores case
	// would compare them.
	seen map[string]made
	dirs []string
}

// made is a path that the unpacker has made.
type made struct {
	name string
	dir  bool
}

// unpack writes the files of an archive below a directory that is empty. They
// cannot reach out of it, also those of a hostile archive.
func unpack(r io.Reader, file, dir string, l limits) error {
	content, err := decompress(r, file)
	if err != nil {
		return fmt.Errorf("it is not of the kind that its ending names: %w", err)
	}
	defer content.Close()
	return extractAll(content, dir, l)
}

// extractAll writes the files of a tar archive.
func extractAll(content io.Reader, dir string, l limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{limits: l, root: root, seen: map[string]made{}}
	// Headers take up to a few KiB for an entry.
	archive := tar.NewReader(&bounded{r: content, left: l.files + int64(l.entries)*8<<10})
	for n := 0; ; n++ {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return u.sync(dir)
		}
		if err != nil {
			return fmt.Errorf("it is damaged, or no archive: %w", err)
		}
		if n >= l.entries {
			return fmt.Errorf("%q: it has more than %d entries", h.Name, l.entries)
		}
		if err := u.extract(h, archive); err != nil {
			return fmt.Errorf("%q: %w", h.Name, withRemedy(err))
		}
	}
}

func decompress(r io.Reader, file string) (io.ReadCloser, error) {
	if strings.HasSuffix(file, ".gz") {
		return gzip.NewReader(r)
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// bounded fails where there is more than was allowed; entries that hold nothing
// would never end otherwise.
type bounded struct {
	r    io.Reader
	left int64
}

var errTooLarge = errors.New("it unpacks to more than an archive may hold")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (u *unpacker) extract(h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil // the comment of `git archive`
	case tar.TypeDir, tar.TypeReg:
	case tar.TypeSymlink, tar.TypeLink:
		return fmt.Errorf("it is a link to %q; an archive holds files and directories only: put a copy in its place", h.Linkname)
	default:
		return fmt.Errorf("it is a device, a pipe or the like (type %q); an archive holds files and directories only", h.Typeflag)
	}
	switch {
	case !filepath.IsLocal(h.Name):
		return errors.New("the path leads out of the archive")
	case strings.Contains(name, `\`) || strings.ContainsFunc(name, isControl) || !utf8.ValidString(name):
		return errors.New("the name has a backslash, control characters or is not UTF-8")
	case h.Typeflag == tar.TypeDir:
		return u.mkdir(name)
	}
	if u.files -= h.Size; u.files < 0 {
		return fmt.Errorf("the files up to this one have more than %s, which is what an archive may hold", schema.Bytes(usualLimits().files))
	}
	if err := u.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := u.claim(name, false); err != nil {
		return err
	}
	return u.write(name, h.FileInfo().Mode(), content)
}

// write makes a read-only file.
func (u *unpacker) write(name string, mode fs.FileMode, content io.Reader) error {
	perm := fs.FileMode(0o444)
	if mode&0o111 != 0 {
		perm = 0o555
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Sync(), f.Close())
}

// mkdir makes a directory and those above it.
func (u *unpacker) mkdir(name string) error {
	if name == "." {
		return nil
	}
	if there, ok := u.seen[strings.ToLower(name)]; ok && there == (made{name, true}) {
		return nil
	}
	if err := u.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if len(u.dirs) >= u.entries {
		return fmt.Errorf("it has more than %d directories", u.entries)
	}
	if err := u.claim(name, true); err != nil {
		return err
	}
	u.dirs = append(u.dirs, name)
	return u.root.Mkdir(name, 0o755)
}

// claim rejects a path that is there already, here or where case is ignored.
func (u *unpacker) claim(name string, dir bool) error {
	folded := strings.ToLower(name)
	there, taken := u.seen[folded]
	switch {
	case taken && there.name == name:
		return fmt.Errorf("%q is in the archive twice", name)
	case taken:
		return fmt.Errorf("%q and %q are one file where case is ignored; rename one of them", there.name, name)
	}
	u.seen[folded] = made{name, dir}
	return nil
}

// sync makes what was written survive a power failure.
func (u *unpacker) sync(dir string) error {
	for _, name := range u.dirs {
		if err := durable.SyncDir(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return durable.SyncDir(dir)
}
