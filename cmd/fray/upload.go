package main

import (
	"context"
	"fmt"
	"io"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/state/store"
)

// uploadBundle packs a directory straight into the store. The store checks the
// content against its name; a project that changed meanwhile is refused.
func uploadBundle(ctx context.Context, s store.Store, sum, dir string) error {
	have, err := s.List(ctx, store.BundleKey(sum))
	if err != nil || len(have) > 0 {
		return err
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		found, _, err := bundle.Pack(dir, w)
		if err == nil && found != sum {
			err = fmt.Errorf("its files changed while they were being packed; run the command again")
		}
		w.CloseWithError(err)
		packed <- err
	}()
	err = s.Upload(ctx, store.BundleKey(sum), r)
	r.CloseWithError(err)
	if packErr := <-packed; packErr != nil {
		return packErr
	}
	return err
}
