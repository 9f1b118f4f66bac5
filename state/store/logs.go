package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/state/logtime"
)

// ReadLog hands what a task of a job, named by its id, has written from an
// offset on to yield, piece by piece, and returns the offset that follows. What
// is being removed ends it without an error.
func ReadLog(ctx context.Context, s Store, of LogName, from int64, yield func(data []byte) error) (int64, error) {
	return logReader{store: s, of: of}.read(ctx, from, func(p LogPart) error { return yield(p.Data) })
}

// LogPart is a piece of a log.
type LogPart struct {
	Data   []byte
	Offset int64         // of its first byte
	Times  logtime.Index // of its bytes; empty where none are kept
}

// ReadDatedLog is ReadLog with the times of what was written.
func ReadDatedLog(ctx context.Context, s Store, of LogName, from int64, yield func(LogPart) error) (int64, error) {
	return logReader{store: s, of: of, dated: true}.read(ctx, from, yield)
}

// logReader reads one task's log.
type logReader struct {
	store Store
	of    LogName
	dated bool
}

func (r logReader) read(ctx context.Context, from int64, yield func(LogPart) error) (int64, error) {
	prefixes := LogPrefixes(r.of.Job, r.of.Attempt, r.of.Task)
	if !r.dated {
		prefixes = prefixes[:1]
	}
	listed, err := r.store.List(ctx, prefixes...)
	if err != nil {
		return from, fmt.Errorf("list logs of %s: %w", r.of.Job, err)
	}
	dated := map[string]bool{}
	for _, o := range listed {
		dated[o.Key] = true
	}
	var start int64
	chunk := 0
	for _, c := range listed {
		if !strings.HasPrefix(c.Key, prefixes[0]) {
			continue
		}
		times := LogTimesKey(r.of.Job, r.of.Attempt, r.of.Task, chunk)
		chunk++
		end := start + c.Size
		if from >= end {
			start = end
			continue
		}
		part := LogPart{Offset: from}
		object, err := r.store.Get(ctx, c.Key)
		if errors.Is(err, ErrNotFound) {
			return from, nil
		}
		if err != nil {
			return from, fmt.Errorf("read logs of %s: %w", r.of.Job, err)
		}
		// The last one may have grown since.
		part.Data = object.Data[min(max(from-start, 0), int64(len(object.Data))):]
		if len(part.Data) > 0 {
			if dated[times] { // after the data, since both may have grown
				if part.Times, err = r.times(ctx, times); err != nil {
					return from, err
				}
			}
			if err := yield(part); err != nil {
				return from, err
			}
		}
		start += int64(len(object.Data))
		from = start
	}
	return from, nil
}

// times are those of one chunk; none if they are being removed.
func (r logReader) times(ctx context.Context, key string) (logtime.Index, error) {
	object, err := r.store.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the times of logs of %s: %w", r.of.Job, err)
	}
	return logtime.Parse(object.Data), nil
}

// LogSize is how much of a task's output is in the store, in bytes.
func LogSize(ctx context.Context, s Store, of LogName) (int64, error) {
	chunks, err := s.List(ctx, of.prefix())
	if err != nil {
		return 0, fmt.Errorf("list logs of %s: %w", of.Job, err)
	}
	var size int64
	for _, c := range chunks {
		size += c.Size
	}
	return size, nil
}

// LogName is whose output it is.
type LogName struct {
	Job           string // its id
	Attempt, Task int
}

func (n LogName) prefix() string { return LogsOf(n.Job, n.Attempt, n.Task) }
