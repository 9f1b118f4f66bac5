package outcome

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/schema"
)

// maxTermination bounds the record that a task may leave of its end, in bytes.
const maxTermination = 64 << 10

// ReadTermination is what a task has recorded about its end, nil if it has not. It
// is the task that wrote the file: what is no such record counts as none.
func ReadTermination(path string) (*schema.Termination, error) {
	// The task may have put a pipe or a link there.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of its end: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the record of its end: %s is no file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTermination+1))
	if err != nil {
		return nil, fmt.Errorf("read the record of its end: %w", err)
	}
	if len(data) > maxTermination {
		return nil, fmt.Errorf("the record of its end has more than %d bytes", maxTermination)
	}
	var end schema.Termination
	if err := json.Unmarshal(data, &end); err != nil {
		return nil, fmt.Errorf("the record of its end: %w", err)
	}
	if !end.Cause.Valid() {
		return nil, fmt.Errorf("the record of its end has the cause %q", end.Cause)
	}
	return &end, nil
}
