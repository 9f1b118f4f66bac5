package files

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Files named by mistake, such as devices and data sets, are rejected rather
// than read to the end.
const (
	MaxFileSize = 16 << 20 // of a configuration
	MaxDataSize = 64 << 20 // of what file() and the like read
)

// readFile reads a regular file of at most limit bytes, or a pipe where those
// are allowed. Its error is without the path, which the caller names.
func readFile(path string, limit int64, pipes bool) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	kind := info.Mode().Type()
	switch {
	case kind == os.ModeDir:
		return nil, errors.New("it is a directory")
	case kind != 0 && (kind != os.ModeNamedPipe || !pipes):
		return nil, errors.New("it is no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, nil
}

func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
