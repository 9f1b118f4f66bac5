package bucket

import (
	"context"
	"time"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"

	"github.com/fray-ml/fray/providers/gcp/client"
)

func (b *Bucket) retry(ctx context.Context, try func() error) error { return b.tempo.Retry(ctx, try) }

// streak is a row of failures in what only the library can retry: the chunks
// of an upload and the rest of a download. It is over once something arrives.
type streak struct {
	tempo client.Pace
	began time.Time // zero: there is none
}

func (s *streak) end() { s.began = time.Time{} }

func (s *streak) goesOn(err error) bool {
	if !client.IsTransient(err) {
		return false
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return time.Since(s.began) < s.tempo.Patience
}

func (s *streak) retryer() []storage.RetryOption {
	return []storage.RetryOption{
		storage.WithPolicy(storage.RetryAlways),
		storage.WithErrorFunc(s.goesOn),
		storage.WithBackoff(gax.Backoff{Initial: s.tempo.Backoff, Max: client.MaxBackoff, Multiplier: 2}),
	}
}
