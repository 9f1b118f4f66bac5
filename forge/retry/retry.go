// Package retry repeats calls of a forge that failed for a reason which passes: limits
// and failures of the forge itself. It waits as long as the forge asks for, within
// bounds. Start with Do.
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/sleep"
)

const (
	attempts = 4
	// pause is the wait before the second attempt where the forge states none; it doubles.
	pause = time.Second
	// longest is the longest wait: a job of CI that waits for longer costs more than it brings.
	longest = 90 * time.Second
)

// Do calls a function until it succeeds, until its error does not pass by itself, or until
// it was called often enough. The function must be safe to repeat: it reads, or it decides
// anew each time whether to write.
func Do(ctx context.Context, call func(context.Context) error) error {
	wait := pause
	for n := 1; ; n++ {
		err := call(ctx)
		after, passes := passing(err)
		if !passes || n == attempts {
			return err
		}
		if after == 0 {
			after, wait = wait, 2*wait
		}
		if after > longest || !sleep.For(ctx, after) {
			return err
		}
	}
}

// passing reports whether an error passes by itself, and when, 0 if that is not known.
func passing(err error) (time.Duration, bool) {
	var e *forge.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.After, e.Cause == forge.Limited || e.Cause == forge.Unavailable
}
