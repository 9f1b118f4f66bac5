// Package bundle packs a project directory into one blob that is named by its
// content, and unpacks it again.
//
// A bundle is a tar archive compressed with zstd. The same files always give
// the same bytes: entries are sorted, times and owners left out, of the mode
// only the executable bit is kept. What .gitignore files exclude stays out, and
// so do .git, .fray, .venv and __pycache__. It does not know where bundles are
// kept, or who runs what is in them.
//
// Start with [Pack].
package bundle

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/fray-ml/fray/schema"
)

// MaxSize is how many bytes of files a bundle may hold. Projects are code:
// whoever exceeds this has forgotten to ignore data.
const MaxSize = 2 << 30

// Pack writes the bundle of a directory to w. It returns the bundle's SHA-256
// in hex, which is its name, and the files in it, as slash-separated paths.
func Pack(dir string, w io.Writer) (sum string, files []string, err error) {
	return pack(dir, w, MaxSize)
}

// Digest is the name of the bundle that Pack would write now.
func Digest(dir string) (string, error) {
	sum, _, err := Pack(dir, io.Discard)
	return sum, err
}

func pack(dir string, w io.Writer, limit int64) (string, []string, error) {
	entries, err := list(dir)
	if err != nil {
		return "", nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	if err := checkSize(entries, limit); err != nil {
		return "", nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	sum := sha256.New()
	// One encoder at a time and a fixed level: the bytes are the name.
	z, err := zstd.NewWriter(io.MultiWriter(w, sum), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return "", nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	archive := tar.NewWriter(z)
	files := make([]string, 0, len(entries))
	for _, e := range entries {
		if err := add(archive, dir, e); err != nil {
			return "", nil, errors.Join(fmt.Errorf("pack %s: %s: %w", dir, e.path, err), z.Close())
		}
		if !e.mode.IsDir() {
			files = append(files, e.path)
		}
	}
	if err := errors.Join(archive.Close(), z.Close()); err != nil {
		return "", nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), files, nil
}

// entry is one file, directory or symbolic link of a project.
type entry struct {
	path string // from the project's directory, with slashes
	mode fs.FileMode
	size int64
	link string // target of a symbolic link
}

// checkSize names the largest files of a project that is too large.
func checkSize(entries []entry, limit int64) error {
	var total int64
	for _, e := range entries {
		total += e.size
	}
	if total <= limit {
		return nil
	}
	bySize := slices.Clone(entries)
	slices.SortFunc(bySize, func(a, b entry) int { return int(b.size>>10) - int(a.size>>10) })
	var largest []string
	for _, e := range bySize[:min(3, len(bySize))] {
		largest = append(largest, fmt.Sprintf("%s (%s)", e.path, schema.Bytes(e.size)))
	}
	return fmt.Errorf("its files have %s, more than the %s that a bundle may hold; list in .gitignore what need not be shipped; the largest are %s",
		schema.Bytes(total), schema.Bytes(limit), strings.Join(largest, ", "))
}

func add(archive *tar.Writer, dir string, e entry) error {
	h := &tar.Header{Name: e.path, Mode: 0o644, Format: tar.FormatPAX}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
		h.Name += "/"
	case e.mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.link, 0o777
	default:
		h.Typeflag, h.Size = tar.TypeReg, e.size
		if e.mode&0o111 != 0 {
			h.Mode = 0o755
		}
	}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(e.path)))
	if err != nil {
		return err
	}
	defer f.Close()
	// A file that grows meanwhile is cut off, as if packed a moment ago.
	n, err := io.Copy(archive, io.LimitReader(f, e.size))
	if err == nil && n < e.size {
		err = errors.New("it became shorter while it was packed; try again")
	}
	return err
}

// linkTarget returns a link's target relative to the link, provided that it
// stays inside the project, or an error that names it.
func linkTarget(dir, linkPath string) (string, error) {
	target, err := os.Readlink(filepath.Join(dir, filepath.FromSlash(linkPath)))
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(target) {
		inside, err := filepath.Rel(dir, target)
		if err != nil {
			return "", err
		}
		target, err = filepath.Rel(filepath.Dir(filepath.FromSlash(linkPath)), inside)
		if err != nil {
			return "", err
		}
	}
	target = filepath.ToSlash(target)
	if !staysInside(linkPath, target) {
		return "", fmt.Errorf("%s is a symbolic link to %s, outside the project; copy what it points to, or ignore it", linkPath, target)
	}
	return target, nil
}

// staysInside reports whether a link's relative target is below the root.
func staysInside(linkPath, target string) bool {
	if path.IsAbs(target) {
		return false
	}
	joined := path.Join(path.Dir(linkPath), target)
	return joined != ".." && !strings.HasPrefix(joined, "../")
}
