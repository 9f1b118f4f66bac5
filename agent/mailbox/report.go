package mailbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// maxReportRetry is the longest wait before a report that could not be written is
// tried again.
const maxReportRetry = 2 * time.Second

// seqBlock is how many report numbers are taken from the host's directory at once.
const seqBlock = 1000

// Reporter writes a host's report: at once when it changes, as often as the
// Store allows, and as a heartbeat otherwise. Only the newest one counts.
type Reporter struct {
	Store     store.Store
	Key       string
	Heartbeat time.Duration
	Log       *slog.Logger
	// Gone keeps a removed host from coming back as a report.
	Gone func() bool
	// Usage measures what the tasks of the host use; nil: that is not reported. Only
	// Run calls it, before each heartbeat: news does not wait for it.
	Usage func(context.Context) map[string]state.Usage
	// TakeSeqs returns the end of a new block of numbers.
	TakeSeqs func(n uint64) (uint64, error)

	mu       sync.Mutex
	report   state.HostReport
	version  uint64 // of report, counted by publish
	written  uint64 // version that the store has
	progress chan struct{}
	wake     chan struct{}

	seq, seqEnd uint64
	usage       map[string]state.Usage // measured last
}

// NewReporter completes a reporter, which has the fields that are exported.
func NewReporter(r *Reporter) *Reporter {
	r.progress = make(chan struct{})
	r.wake = make(chan struct{}, 1)
	return r
}

// Publish replaces the report; the writing happens in run.
func (r *Reporter) Publish(report state.HostReport) {
	r.mu.Lock()
	r.report = report
	r.version++
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Flush returns once everything published so far is written.
func (r *Reporter) Flush(ctx context.Context) error {
	r.mu.Lock()
	target := r.version
	r.mu.Unlock()
	for {
		r.mu.Lock()
		done, progress := r.written >= target, r.progress
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("write host report: %w", context.Cause(ctx))
		case <-progress:
		}
	}
}

// Run writes until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	beat := time.NewTimer(r.Heartbeat)
	defer beat.Stop()
	retry := 50 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-beat.C:
			if r.Usage != nil {
				r.usage = r.Usage(ctx)
			}
		}
		wait := r.Heartbeat
		if err := r.write(ctx); err != nil {
			r.Log.Warn("report not written", "error", err)
			retry = min(2*retry, r.Heartbeat, maxReportRetry)
			wait = retry
		} else {
			retry = 50 * time.Millisecond
			if !sleep.For(ctx, r.Store.WriteInterval()) {
				return
			}
		}
		beat.Reset(wait)
	}
}

func (r *Reporter) write(ctx context.Context) error {
	r.mu.Lock()
	report, version := r.report, r.version
	r.mu.Unlock()
	if version == 0 || r.Gone() {
		return nil
	}
	if r.seq >= r.seqEnd {
		end, err := r.TakeSeqs(seqBlock)
		if err != nil { // a full disk must not make the host silent
			r.Log.Warn("report numbers not remembered", "error", err)
		}
		r.seq, r.seqEnd = end-seqBlock, end
	}
	r.seq++
	report.Usage = r.usage
	if billed, ok := store.AsBilled(r.Store); ok {
		report.Requests = new(billed.Requests())
	}
	report.Seq, report.At = r.seq, time.Now()
	data, err := store.Encode(report)
	if err != nil {
		return fmt.Errorf("encode host report: %w", err)
	}
	if _, err := r.Store.Put(ctx, r.Key, data, store.Any); err != nil {
		return fmt.Errorf("write host report: %w", err)
	}
	r.mu.Lock()
	r.written = version
	close(r.progress)
	r.progress = make(chan struct{})
	r.mu.Unlock()
	return nil
}
