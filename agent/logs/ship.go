package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fray-ml/fray/state/store"
)

const (
	// chunkSize is when a chunk of output is full, in bytes.
	chunkSize = 256 << 10
	// Interval is the time between two writes of a chunk, unless the
	// store wants more.
	Interval = 200 * time.Millisecond
)

// Shipper copies a task's output file into the store. All its memory is the
// store's: the sizes of the chunks show how far it came.
type Shipper struct {
	Store   store.Store
	Job     string // its id
	Attempt int
	Task    int
	Path    string

	chunk int   // number of the chunk that grows
	start int64 // offset of that chunk in the file
	sent  int64 // offset up to which the file is shipped
}

// Clear removes what an earlier task of the same name left.
func (s *Shipper) Clear(ctx context.Context) error {
	chunks, err := s.Store.List(ctx, store.LogsOf(s.Job, s.Attempt, s.Task))
	if err != nil {
		return fmt.Errorf("clear logs: %w", err)
	}
	for _, c := range chunks {
		if err := s.Store.Delete(ctx, c.Key); err != nil {
			return fmt.Errorf("clear logs: %w", err)
		}
	}
	return nil
}

// Resume goes on where the store's chunks end.
func (s *Shipper) Resume(ctx context.Context) error {
	chunks, err := s.Store.List(ctx, store.LogsOf(s.Job, s.Attempt, s.Task))
	if err != nil {
		return fmt.Errorf("resume logs: %w", err)
	}
	for i, c := range chunks {
		if i < len(chunks)-1 {
			s.chunk, s.start = i+1, s.start+c.Size
		}
		s.sent += c.Size
	}
	return nil
}

// Ship writes what is new, chunk by chunk.
func (s *Shipper) Ship(ctx context.Context) error {
	f, err := os.Open(s.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ship logs: %w", err)
	}
	defer f.Close()
	for {
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("ship logs: %w", err)
		}
		if info.Size() <= s.sent {
			return nil
		}
		data := make([]byte, min(info.Size()-s.start, chunkSize))
		if _, err := io.ReadFull(io.NewSectionReader(f, s.start, int64(len(data))), data); err != nil {
			return fmt.Errorf("ship logs: %w", err)
		}
		if _, err := s.Store.Put(ctx, store.LogKey(s.Job, s.Attempt, s.Task, s.chunk), data, store.Any); err != nil {
			return fmt.Errorf("ship logs: %w", err)
		}
		s.sent = s.start + int64(len(data))
		if len(data) == chunkSize {
			s.chunk, s.start = s.chunk+1, s.sent
		}
	}
}

// End returns the last bytes of a file, at most n, "" if there is none.
func End(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-n), n))
	if err != nil {
		return ""
	}
	return string(data)
}
