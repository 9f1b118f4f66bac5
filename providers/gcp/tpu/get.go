package tpu

import (
	"context"

	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Get reads the node and the queued resource of a slice.
func (t *Engine) Get(ctx context.Context, stack string, at engine.Place) (*schema.SliceStatus, error) {
	s, err := t.lookup(ctx, at)
	if err != nil || s == nil {
		return nil, err
	}
	m := s.marks()
	if !m.Owned(stack) {
		return nil, nil
	}
	// Not through the cache of lists: a list may have been wrong.
	status, err := s.status(m, (&mark.Specs{}).Reader())
	if err != nil {
		return nil, err
	}
	return &status, nil
}
