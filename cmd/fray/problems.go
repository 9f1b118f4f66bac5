package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/terminal"
)

// problemPace is the time between two lines about a store that does not answer.
const problemPace = 20 * time.Second

// withProblems returns a context whose retries of requests to a bucket are reported at the
// terminal, with their cause, while nothing else is printed.
func withProblems(ctx context.Context, a *terminal.Terminal) context.Context {
	if !terminal.IsTerminal(a.Stderr) {
		return ctx
	}
	return client.WithRetryNotice(ctx, (&problemNotice{app: a, now: time.Now}).report)
}

// problemNotice reports problems of many goroutines, at most one line per problemPace.
type problemNotice struct {
	app *terminal.Terminal
	now func() time.Time

	mu   sync.Mutex
	last time.Time // a line was written
}

func (t *problemNotice) report(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.last) >= problemPace {
		t.last = now
		fmt.Fprintf(t.app.Stderr, "\r\x1b[KThe store does not answer as it should; trying again, for up to a minute (Ctrl-C gives up): %v\n", err)
	}
}
