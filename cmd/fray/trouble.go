package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp"
)

// troublePace is the time between two lines about a store that does not answer.
const troublePace = 20 * time.Second

// troubled returns a context in which whoever sits at the terminal is told that a
// bucket is asked again and again, and why, while they see nothing happen.
func (a *app) troubled(ctx context.Context) context.Context {
	if !isTerminal(a.stderr) {
		return ctx
	}
	return gcp.WithTrouble(ctx, (&trouble{app: a, now: time.Now}).tell)
}

// trouble tells of what many goroutines run into, at most one line per troublePace.
type trouble struct {
	app *app
	now func() time.Time

	mu   sync.Mutex
	last time.Time // a line was written
}

func (t *trouble) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.last) >= troublePace {
		t.last = now
		fmt.Fprintf(t.app.stderr, "\r\x1b[KThe store does not answer as it should; trying again, for up to a minute (Ctrl-C gives up): %v\n", err)
	}
}
