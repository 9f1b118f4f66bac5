package agent

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
	// shipInterval is the time between two writes of a chunk, unless the
	// store wants more.
	shipInterval = 200 * time.Millisecond
)

// shipper copies a task's output file into the store. All its memory is the
// store's: chunks tell by their sizes how far it came.
type shipper struct {
	store   store.Store
	job     string // its id
	attempt int
	task    int
	path    string

	chunk int   // number of the chunk that grows
	start int64 // offset of that chunk in the file
	sent  int64 // offset up to which the file is shipped
}

// clear removes what an earlier task of the same name left.
func (s *shipper) clear(ctx context.Context) error {
	chunks, err := s.store.List(ctx, store.LogsOf(s.job, s.attempt, s.task))
	if err != nil {
		return fmt.Errorf("clear logs: %w", err)
	}
	for _, c := range chunks {
		if err := s.store.Delete(ctx, c.Key); err != nil {
			return fmt.Errorf("clear logs: %w", err)
		}
	}
	return nil
}

// resume goes on where the store's chunks end.
func (s *shipper) resume(ctx context.Context) error {
	chunks, err := s.store.List(ctx, store.LogsOf(s.job, s.attempt, s.task))
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

// ship writes what is new, chunk by chunk.
func (s *shipper) ship(ctx context.Context) error {
	f, err := os.Open(s.path)
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
		if _, err := s.store.Put(ctx, store.LogKey(s.job, s.attempt, s.task, s.chunk), data, store.Any); err != nil {
			return fmt.Errorf("ship logs: %w", err)
		}
		s.sent = s.start + int64(len(data))
		if len(data) == chunkSize {
			s.chunk, s.start = s.chunk+1, s.sent
		}
	}
}

// outputEnd returns the last bytes of a file, at most n, "" if there is none.
func outputEnd(path string, n int64) string {
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
