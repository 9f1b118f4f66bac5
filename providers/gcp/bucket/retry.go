package bucket

import (
	"context"
	"time"

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

// goesOn reports whether to try again after an error.
func (s *streak) goesOn(err error) bool { return client.IsTransient(err) && s.lasts() }

// lasts counts a failure, and reports whether there is patience for more.
func (s *streak) lasts() bool {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return time.Since(s.began) < s.tempo.Patience
}

// backoff is the pauses between tries.
func (s *streak) backoff() gax.Backoff {
	return gax.Backoff{Initial: s.tempo.Backoff, Max: client.MaxBackoff, Multiplier: 2}
}
