package ray

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/fray-ml/fray/providers/ray/driver"
)

// shipped is the package with fray's program and the driver: it is built once and uploaded to
// a cluster that has none of the same content.
type shipped struct {
	mu     sync.Mutex
	file   string // of the program that it was measured of, "" before
	is     os.FileInfo
	digest string // of the program
	pkg    string
}

// name is the name of the package of a program, by its content, and the digest of the program.
func (s *shipped) name(file string) (name, digest string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.Open(file)
	if err != nil {
		return "", "", fmt.Errorf("read fray's program: %w", err)
	}
	defer f.Close()
	is, err := f.Stat()
	if err != nil {
		return "", "", fmt.Errorf("read fray's program: %w", err)
	}
	// An upgrade puts another program into its place while this process runs.
	if s.file == file && os.SameFile(is, s.is) && is.ModTime().Equal(s.is.ModTime()) && is.Size() == s.is.Size() {
		return s.pkg, s.digest, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", "", fmt.Errorf("read fray's program: %w", err)
	}
	s.digest = hex.EncodeToString(sum.Sum(nil))
	sum.Write(driver.Source)
	s.file, s.is, s.pkg = file, is, "fray-"+hex.EncodeToString(sum.Sum(nil))[:32]+".zip"
	return s.pkg, s.digest, nil
}

// ship uploads the package unless the cluster has it. One goroutine does at a time: the others find
// it there.
func (s *shipped) ship(ctx context.Context, c *client, file, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, err := c.hasPackage(ctx, name); err != nil || there {
		return err
	}
	content, err := pack(file)
	if err != nil {
		return err
	}
	return c.upload(ctx, name, content)
}

// pack is the package: fray's program and the driver.
func pack(file string) ([]byte, error) {
	program, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("pack fray's program: %w", err)
	}
	defer program.Close()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	for _, each := range []struct {
		name    string
		content io.Reader
	}{{"fray", program}, {driver.Name, bytes.NewReader(driver.Source)}} {
		entry, err := w.Create(each.name)
		if err == nil {
			_, err = io.Copy(entry, each.content)
		}
		if err != nil {
			return nil, fmt.Errorf("pack fray's program: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack fray's program: %w", err)
	}
	return packed.Bytes(), nil
}
