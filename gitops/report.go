package gitops

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/sleep"
)

// Statuses is where statuses of commits are reported.
type Statuses interface {
	SetStatus(ctx context.Context, commit string, s forge.Status) error
}

// Bounds of what is to be reported.
const (
	maxQueue   = 20 // commits
	tries      = 8  // of one status, while no later one of its commit is to be reported
	firstPause = 2 * time.Second
	maxPause   = 5 * time.Minute
)

// Reporter reports statuses of commits without holding up its caller: of each commit the last
// one, as soon as the forge takes it. The zero Reporter and nil report nothing.
type Reporter struct {
	to      Statuses
	context string // of the statuses
	log     *slog.Logger
	pause   func(ctx context.Context, d time.Duration) bool

	mu    sync.Mutex
	queue []report // of each commit one, oldest first
	more  chan struct{}
}

type report struct {
	commit string
	status forge.Status
	tried  int
}

// NewReporter returns a Reporter to a forge. Its Run is to be called.
func NewReporter(to Statuses, name string, log *slog.Logger) *Reporter {
	return &Reporter{to: to, context: name, log: log, pause: sleep.For, more: make(chan struct{}, 1)}
}

// Report has a status of a commit reported, in place of an earlier one that is not yet.
func (r *Reporter) Report(commit string, state forge.State, text string) {
	if r == nil || r.to == nil || commit == "" {
		return
	}
	r.mu.Lock()
	r.queue = slices.DeleteFunc(r.queue, func(other report) bool { return other.commit == commit })
	r.queue = append(r.queue, report{commit: commit, status: forge.Status{Context: r.context, State: state, Description: text}})
	if len(r.queue) > maxQueue {
		r.queue = slices.Delete(r.queue, 0, 1)
	}
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// Run reports until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	if r == nil || r.to == nil {
		return
	}
	failures := 0
	for ctx.Err() == nil {
		next, ok := r.first()
		if !ok {
			select {
			case <-ctx.Done():
			case <-r.more:
			}
			continue
		}
		err := r.to.SetStatus(ctx, next.commit, next.status)
		if ctx.Err() != nil {
			return
		}
		if failures++; err == nil {
			failures = 0
		}
		r.conclude(next, err)
		if failures == 1 {
			r.log.Warn("the status of a commit is not reported to the forge; it is tried again", "commit", Short(next.commit), "why", err.Error())
		}
		if failures > 0 {
			r.pause(ctx, min(firstPause<<min(failures-1, 10), maxPause))
		}
	}
}

func (r *Reporter) first() (report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return report{}, false
	}
	return r.queue[0], true
}

// conclude drops what was reported, and what was tried often enough; other commits come first then.
func (r *Reporter) conclude(done report, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.queue, func(other report) bool { return other.commit == done.commit })
	if i < 0 || r.queue[i].status != done.status {
		return // a later one took its place
	}
	again := r.queue[i]
	r.queue = slices.Delete(r.queue, i, i+1)
	if again.tried++; err != nil && again.tried < tries {
		r.queue = append(r.queue, again)
	}
}

// Short is a commit's ID for people.
func Short(commit string) string { return commit[:min(len(commit), 12)] }
