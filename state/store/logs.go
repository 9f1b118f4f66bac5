package store

import (
	"context"
	"errors"
	"fmt"
)

// ReadLog hands what a task of a job, named by its id, has written from an
// offset on to yield, piece by piece, and returns the offset that follows. What
// is being removed ends it without an error.
func ReadLog(ctx context.Context, s Store, of LogName, from int64, yield func(data []byte) error) (int64, error) {
	chunks, err := s.List(ctx, of.prefix())
	if err != nil {
		return from, fmt.Errorf("list logs of %s: %w", of.Job, err)
	}
	var start int64
	for _, c := range chunks {
		end := start + c.Size
		if from >= end {
			start = end
			continue
		}
		object, err := s.Get(ctx, c.Key)
		if errors.Is(err, ErrNotFound) {
			return from, nil
		}
		if err != nil {
			return from, fmt.Errorf("read logs of %s: %w", of.Job, err)
		}
		// The last one may have grown since.
		data := object.Data[min(max(from-start, 0), int64(len(object.Data))):]
		if len(data) > 0 {
			if err := yield(data); err != nil {
				return from, err
			}
		}
		start += int64(len(object.Data))
		from = start
	}
	return from, nil
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
