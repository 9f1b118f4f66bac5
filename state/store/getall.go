package store

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
)

// How many objects are read at a time: more where many are, far below what a bucket serves.
const (
	parallelReads = 16
	manyReads     = 128
	many          = 512
)

// GetAll reads objects, in the order of their keys as given; those that are not there have no key.
func GetAll(ctx context.Context, s Store, keys []string) ([]Object, error) {
	objects := make([]Object, len(keys))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	if len(keys) >= many {
		group.SetLimit(manyReads)
	}
	for i, key := range keys {
		if reading.Err() != nil {
			break
		}
		group.Go(func() error {
			object, err := s.Get(reading, key)
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			objects[i] = object
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return objects, nil
}
