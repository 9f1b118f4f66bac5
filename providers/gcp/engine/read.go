package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fray-ml/fray/providers/gcp/client"
)

// Limits of calls.
const (
	CallLimit = 60 * time.Second // for one call, as the official clients have it
	ReadTries = 4                // of what changes nothing, while its errors may pass
)

// Reader calls what changes nothing, and tries again what may pass.
type Reader struct{ Backoff time.Duration }

// Wait pauses before another try.
func (r Reader) Wait(ctx context.Context, try int) error {
	wait := time.Duration(float64(r.Backoff<<try) * (0.5 + rand.Float64()))
	return client.Pause(ctx, wait)
}
