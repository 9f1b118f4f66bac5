package bundle

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Unpack writes the files of a bundle below a directory that is there already.
// The bundle must have the given name, its SHA-256; what it contains cannot
// reach out of the directory.
func Unpack(r io.Reader, sum, dir string) error {
	if err := unpack(r, sum, dir); err != nil {
		return fmt.Errorf("unpack bundle %.12s: %w", sum, err)
	}
	return nil
}

func unpack(r io.Reader, sum, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	hash := sha256.New()
	whole := io.TeeReader(r, hash)
	z, err := zstd.NewReader(whole, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	archive := tar.NewReader(z)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := extract(root, h, archive); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("it is damaged: its SHA-256 is %s", got)
	}
	return nil
}

func extract(root *os.Root, h *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(h.Name) {
		return errors.New("the path leads out of the bundle")
	}
	name := path.Clean(h.Name)
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		if !staysInside(name, h.Linkname) {
			return fmt.Errorf("the symbolic link to %q leads out of the bundle", h.Linkname)
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(h.Mode)&0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	}
	return fmt.Errorf("a bundle holds no entries of type %q", h.Typeflag)
}
