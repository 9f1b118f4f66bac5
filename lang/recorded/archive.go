package recorded

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// format is the version of archives; others are rejected.
const format = "fray-configuration/1"

// Names in an archive.
const (
	headName    = "configuration.json" // comes first
	filesFolder = "files"              // and the path
)

// maxArchive bounds what an archive unpacks to: what is recorded, and 2 KiB around
// each file.
const (
	maxArchive = 16 * MaxSize
	maxFiles   = 100_000
)

type head struct {
	Format string `json:"format"`
	*Configuration
}

// Encode returns the configuration as an archive: a tar of all files, with one
// more for everything else, compressed with zstd. Equal configurations give
// equal archives. The error is [TooLarge] where too much would be in it.
func (c *Configuration) Encode() ([]byte, error) {
	if c.size > MaxSize || len(c.content) > maxFiles {
		return nil, TooLarge{Size: c.size, Files: len(c.content)}
	}
	first, err := json.Marshal(head{format, c})
	if err != nil {
		return nil, fmt.Errorf("record configuration: %w", err)
	}
	if size := int64(len(first)) + c.size; size > MaxSize {
		return nil, TooLarge{Size: size}
	}
	var out bytes.Buffer
	compressed, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return nil, fmt.Errorf("record configuration: %w", err)
	}
	archive := tar.NewWriter(compressed)
	err = add(archive, headName, first)
	for _, path := range slices.Sorted(maps.Keys(c.content)) {
		err = errors.Join(err, add(archive, filesFolder+path, c.content[path]))
	}
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("record configuration: %w", err)
	}
	return out.Bytes(), nil
}

// add adds a file without a time or an owner.
func add(archive *tar.Writer, name string, data []byte) error {
	if err := archive.WriteHeader(&tar.Header{Format: tar.FormatPAX, Name: name, Mode: 0o600, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}

// Decode reads what Encode wrote.
func Decode(data []byte) (*Configuration, error) {
	c, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("open the recording of the configuration: %w", err)
	}
	return c, nil
}

func decode(data []byte) (*Configuration, error) {
	plain, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxArchive))
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	archive := tar.NewReader(io.LimitReader(plain, maxArchive))
	first, err := archive.Next()
	if err != nil {
		return nil, err
	}
	if first.Name != headName {
		return nil, fmt.Errorf("it begins with %q, want %s", first.Name, headName)
	}
	c := &Configuration{}
	read := head{Configuration: c}
	if err := json.NewDecoder(archive).Decode(&read); err != nil {
		return nil, err
	}
	if read.Format != format {
		return nil, fmt.Errorf("it has format %q, this fray reads %s; use the fray that made it, or run fray apply again", read.Format, format)
	}
	c.content = map[string][]byte{}
	for {
		next, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		path, ok := strings.CutPrefix(next.Name, filesFolder)
		if !ok {
			return nil, fmt.Errorf("there is a %q in it", next.Name)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		c.content[path], c.size = content, c.size+int64(len(content))
	}
}
