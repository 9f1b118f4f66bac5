package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
)

const (
	// chunkSize is when a chunk of output is full, in bytes.
	chunkSize = 256 << 10
	// Interval is the time between two writes of a chunk, unless the
	// store wants more.
	Interval = 200 * time.Millisecond
	// timesRatio is how many writes of a growing chunk there are to one of its times,
	// where the store wants its writes apart: then each costs something.
	timesRatio = 5
)

// Shipper copies a task's output file into the store. All its memory is the
// store's: the sizes of the chunks show how far it came.
type Shipper struct {
	Store   store.Store
	Job     string // its id
	Attempt int
	Task    int
	Path    string
	Times   string // the file of when it was written; "": that is not shipped

	chunk int   // number of the chunk that grows
	start int64 // offset of that chunk in the file
	sent  int64 // offset up to which the file is shipped
	dated int64 // offset up to which its times are
	since int   // writes of the chunk since its times were written
}

// Clear removes what an earlier task of the same name left.
func (s *Shipper) Clear(ctx context.Context) error {
	chunks, err := s.Store.List(ctx, store.LogPrefixes(s.Job, s.Attempt, s.Task)...)
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
	s.dated = s.start // those of the last chunk are written anew
	return nil
}

// Ship writes what is new, chunk by chunk.
func (s *Shipper) Ship(ctx context.Context) error { return s.ship(ctx, s.Store.WriteInterval() == 0) }

// Finish is Ship for a log to which nothing is added: all its times are shipped.
func (s *Shipper) Finish(ctx context.Context) error { return s.ship(ctx, true) }

func (s *Shipper) ship(ctx context.Context, allTimes bool) error {
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
			if allTimes {
				return s.date(ctx, s.sent)
			}
			return nil
		}
		data := make([]byte, min(info.Size()-s.start, chunkSize))
		if _, err := io.ReadFull(io.NewSectionReader(f, s.start, int64(len(data))), data); err != nil {
			return fmt.Errorf("ship logs: %w", err)
		}
		full := len(data) == chunkSize
		s.since++
		if full || allTimes || s.since >= timesRatio {
			// Before the data, so that its readers find them.
			if err := s.date(ctx, s.start+int64(len(data))); err != nil {
				return err
			}
		}
		if _, err := s.Store.Put(ctx, store.LogKey(s.Job, s.Attempt, s.Task, s.chunk), data, store.Any); err != nil {
			return fmt.Errorf("ship logs: %w", err)
		}
		s.sent = s.start + int64(len(data))
		if full {
			s.chunk, s.start = s.chunk+1, s.sent
		}
	}
}

// date writes the times of the chunk that grows, up to an offset.
func (s *Shipper) date(ctx context.Context, to int64) error {
	if s.Times == "" || s.dated == to || s.start == to {
		return nil
	}
	f, err := os.Open(s.Times)
	if errors.Is(err, os.ErrNotExist) {
		return nil // an agent before this version started the task
	}
	if err != nil {
		return fmt.Errorf("ship times of logs: %w", err)
	}
	defer f.Close()
	index, err := readTimes(f, s.start, to)
	if err != nil {
		return err
	}
	index = append(index, logtime.Mark{Offset: to}) // what follows is not dated yet
	if _, err := s.Store.Put(ctx, store.LogTimesKey(s.Job, s.Attempt, s.Task, s.chunk), index.Bytes(), store.Any); err != nil {
		return fmt.Errorf("ship times of logs: %w", err)
	}
	s.dated, s.since = to, 0
	return nil
}

// readTimes are the marks of a part of a log.
func readTimes(f *os.File, from, to int64) (logtime.Index, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read times of logs: %w", err)
	}
	return logtime.Read(f, info.Size(), from, to)
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
