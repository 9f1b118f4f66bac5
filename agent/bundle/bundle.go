// Package bundle packs a project directory into parts that are named by their
// content, brings them into a store, and fetches and unpacks them again.
//
// A bundle is a tar archive compressed with zstd. The same files always give
// the same bytes: entries are sorted, times and owners left out, of the mode
// only the executable bit is kept. What .gitignore files exclude stays out, and
// so do .git, .fray, .venv and __pycache__. A large archive is cut where its
// own content says, so that a change in one place leaves most parts what they
// were; each part is a zstd frame, and the parts in order are the bundle.
//
// In the store a bundle of one part is bundles/<sha256>. One of several is a
// blob bundles/<sha256 of the part> for each, and bundles/<sha256>.parts, which
// lists them and is written last: with it the bundle is complete.
//
// It does not know who runs what is in a bundle. Start with [Pack], then
// [Shipper] and [Fetcher].
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

	"github.com/fray-ml/fray/schema"
)

// MaxSize is how many bytes of files a bundle may hold. Projects are code:
// a project that exceeds this lacks a rule to ignore data.
const MaxSize = 2 << 30

// Manifest lists what a bundle is made of.
type Manifest struct {
	Sum   string `json:"sha256"` // of the whole, in hex: the bundle's name
	Parts []Part `json:"parts"`  // in order
}

// Part is a piece of a bundle.
type Part struct {
	Sum  string `json:"sha256"`
	Size int64  `json:"size"` // bytes, compressed
}

// Size is the bundle's, in bytes.
func (m Manifest) Size() int64 {
	var size int64
	for _, p := range m.Parts {
		size += p.Size
	}
	return size
}

// Pack writes the bundle of a directory to w. It returns the bundle's SHA-256
// in hex, which is its name, and the files in it, as slash-separated paths.
func Pack(dir string, w io.Writer) (sum string, files []string, err error) {
	m, files, err := usualPacker().pack(dir, func(_ Part, frame []byte) error {
		_, err := w.Write(frame)
		return err
	})
	return m.Sum, files, err
}

// Measure is the manifest of the bundle that Pack would write now.
func Measure(dir string) (Manifest, error) { return usualPacker().measure(dir) }

// packer makes bundles.
type packer struct {
	limit int64 // bytes of files
	cuts  cuts
}

func usualPacker() packer { return packer{limit: MaxSize, cuts: usualCuts()} }

func (p packer) measure(dir string) (Manifest, error) {
	m, _, err := p.pack(dir, func(Part, []byte) error { return nil })
	return m, err
}

// pack calls emit with one part after the other; each is emit's own only while
// that runs. An error of emit ends the packing and is returned as it is.
func (p packer) pack(dir string, emit func(Part, []byte) error) (Manifest, []string, error) {
	var m Manifest
	whole := sha256.New()
	frames := newSplitter(p.cuts, func(frame []byte) error {
		sum := sha256.Sum256(frame)
		part := Part{Sum: hex.EncodeToString(sum[:]), Size: int64(len(frame))}
		m.Parts = append(m.Parts, part)
		_, _ = whole.Write(frame) // never fails
		return emit(part, frame)
	})
	files, err := p.archive(dir, frames)
	if frames.emitErr != nil {
		return Manifest{}, nil, frames.emitErr
	}
	if err != nil {
		return Manifest{}, nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	m.Sum = hex.EncodeToString(whole.Sum(nil))
	return m, files, nil
}

// archive writes a directory as a tar archive and returns the files in it.
func (p packer) archive(dir string, w io.WriteCloser) ([]string, error) {
	entries, err := list(dir)
	if err != nil {
		return nil, err
	}
	if err := checkSize(entries, p.limit); err != nil {
		return nil, err
	}
	archive := tar.NewWriter(w)
	files := make([]string, 0, len(entries))
	for _, e := range entries {
		if err := add(archive, dir, e); err != nil {
			return nil, fmt.Errorf("%s: %w", e.path, err)
		}
		if !e.mode.IsDir() {
			files = append(files, e.path)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return files, w.Close() // only now: what is cut short is no part
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
