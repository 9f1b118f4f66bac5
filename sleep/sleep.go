package sleep

import (
	"context"
	"time"
)

// For waits for d and reports whether ctx still goes on. It returns at once if ctx
// has ended or d is not positive; where it returns false, context.Cause says why.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
