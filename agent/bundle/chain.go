package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// chain reads parts one after the other, each from its file once that is there.
type chain struct {
	ctx   context.Context // ends the waiting
	dir   string
	parts []Part                   // left to be read
	here  map[string]chan struct{} // by digest; closed when the part is
	file  *os.File                 // the first of parts, once it is read
}

func newChain(dir string, parts []Part) *chain {
	c := &chain{ctx: context.Background(), dir: dir, parts: parts, here: map[string]chan struct{}{}}
	for _, p := range parts {
		if c.here[p.Sum] == nil {
			c.here[p.Sum] = make(chan struct{})
		}
	}
	return c
}

// arrived notes that a part is there, once for those with the same content.
func (c *chain) arrived(p Part) { close(c.here[p.Sum]) }

func (c *chain) Read(p []byte) (int, error) {
	for len(c.parts) > 0 {
		if c.file == nil {
			if err := c.open(c.parts[0].Sum); err != nil {
				return 0, err
			}
		}
		n, err := c.file.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		c.close()
		c.parts = c.parts[1:]
	}
	return 0, io.EOF
}

func (c *chain) open(sum string) error {
	select {
	case <-c.here[sum]:
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	file, err := os.Open(filepath.Join(c.dir, sum))
	c.file = file
	return err
}

// close lets go of what was only read.
func (c *chain) close() {
	if c.file != nil {
		_ = c.file.Close()
		c.file = nil
	}
}

// digest is the SHA-256 of a file, in hex, and its size.
func digest(path string) (string, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), size, err
}
