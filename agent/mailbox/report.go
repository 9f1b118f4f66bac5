package mailbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
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

// signOfLife is how often a host writes to the store, at least, while its reports are
// acknowledged by stream.
const signOfLife = time.Minute

// usagePace is how often a host reports by stream what its tasks use.
const usagePace = 15 * time.Second

// Stream is the way of reports to the controller beside the store. Its methods do not block.
type Stream interface {
	// Report hands a report over; of several that wait only the newest is sent.
	Report(r state.HostReport)
	// Live reports whether the controller acknowledges what is sent.
	Live() bool
	// Heartbeat is the time between two reports to which nothing happens.
	Heartbeat() time.Duration
	// Beat is the time until the next one.
	Beat() time.Duration
	// StoreHeartbeat is the time between two reports to the store while the controller
	// acknowledges nothing; 0: the Reporter's own.
	StoreHeartbeat() time.Duration
}

// Reporter writes a host's report: at once when it changes, as often as the
// Store allows, and as a heartbeat otherwise. Only the newest one counts. While its
// Stream is live, reports go there, and the store gets those that must not get lost and
// now and then a sign of life.
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
	// Stream is the way beside the store; nil: there is none.
	Stream Stream
	// Durable reports whether a report has news that must not get lost. It goes with Stream.
	Durable func(before, r *state.HostReport) bool

	mu       sync.Mutex
	report   state.HostReport
	version  uint64 // of report, counted by publish
	durable  uint64 // the last version with news that must not get lost
	written  uint64 // version that the store has, or need not have
	progress chan struct{}
	wake     chan struct{}
	numbers  struct{ last, end uint64 } // of reports
	usage    map[string]state.Usage     // measured last
	streamed streamedUsage
	stored   struct {
		at     time.Time     // when the store was written last
		lifeIn time.Duration // after that, the next sign of life
		// cutOff is since when the stream is not live, zero while it is, and firstIn after which
		// time a sign of life follows.
		cutOff  time.Time
		firstIn time.Duration
	}
}

// streamedUsage is what tasks use as it was sent by stream last.
type streamedUsage struct {
	at    time.Time
	usage state.HostUsage
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
	if r.Stream == nil || r.version == 0 || r.Durable(&r.report, &report) {
		r.durable = r.version + 1
	}
	r.report = report
	r.version++
	r.mu.Unlock()
	r.send()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// send hands the report over to the stream.
func (r *Reporter) send() {
	if r.Stream == nil || r.Gone() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version == 0 {
		return
	}
	report := r.nextLocked()
	if time.Since(r.streamed.at) >= usagePace {
		r.streamed = streamedUsage{time.Now(), report.HostUsage}
	}
	report.HostUsage = r.streamed.usage
	r.Stream.Report(report)
}

// nextLocked is the report with a number of its own.
func (r *Reporter) nextLocked() state.HostReport {
	if r.numbers.last >= r.numbers.end {
		end, err := r.TakeSeqs(seqBlock)
		if err != nil { // a full disk must not make the host silent
			r.Log.Warn("report numbers not remembered", "error", err)
		}
		r.numbers.last, r.numbers.end = end-seqBlock, end
	}
	r.numbers.last++
	report := r.report
	report.Usage = r.usage
	if billed, ok := store.AsBilled(r.Store); ok {
		report.Requests = new(billed.Requests())
	}
	report.Seq, report.At = r.numbers.last, time.Now()
	return report
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
	if r.Stream != nil {
		var beating sync.WaitGroup
		defer beating.Wait()
		beating.Go(func() { r.beat(ctx) })
	}
	beat := time.NewTimer(r.pace())
	defer beat.Stop()
	retry := 50 * time.Millisecond
	for {
		beaten := false
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-beat.C:
			beaten = true
			if r.Usage != nil {
				usage := r.Usage(ctx)
				r.mu.Lock()
				r.usage = usage
				r.mu.Unlock()
			}
		}
		wait := r.pace()
		if !r.due(beaten) {
			beat.Reset(wait)
			continue
		}
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

// beat sends heartbeats by stream until ctx ends, also while a write to the store hangs.
func (r *Reporter) beat(ctx context.Context) {
	for sleep.For(ctx, r.Stream.Beat()) {
		r.send()
	}
}

// pace is the time between two checks of whether the store is to be written.
func (r *Reporter) pace() time.Duration {
	if r.Stream == nil {
		return r.Heartbeat
	}
	return min(r.Heartbeat, r.Stream.Heartbeat())
}

// due reports whether the store is to be written: for news or, after a heartbeat, as a sign
// of life. It is not where the stream makes up for it.
func (r *Reporter) due(beaten bool) bool {
	if r.Stream == nil {
		return true
	}
	live := r.Stream.Live()
	r.mu.Lock()
	defer r.mu.Unlock()
	since := time.Since(r.stored.at)
	pace := max(r.Heartbeat, r.Stream.StoreHeartbeat())
	switch {
	case live:
		r.stored.cutOff = time.Time{}
	case r.stored.cutOff.IsZero():
		r.stored.cutOff, r.stored.firstIn = time.Now(), 0
		if pace > r.Heartbeat { // of many hosts that lose their streams together
			r.stored.firstIn = rand.N(pace)
		}
	}
	switch {
	case r.durable > r.written:
		return true
	case live && since < r.stored.lifeIn:
		r.writtenLocked(r.version)
		return false
	case live:
		return true
	case r.version > r.written:
		return true
	}
	return beaten && since >= pace-r.Heartbeat/4 && time.Since(r.stored.cutOff) >= r.stored.firstIn
}

func (r *Reporter) writtenLocked(version uint64) {
	if version == r.written {
		return
	}
	r.written = version
	close(r.progress)
	r.progress = make(chan struct{})
}

func (r *Reporter) write(ctx context.Context) error {
	if r.Gone() {
		return nil
	}
	r.mu.Lock()
	version := r.version
	if version == 0 {
		r.mu.Unlock()
		return nil
	}
	report := r.nextLocked()
	r.mu.Unlock()
	data, err := store.Encode(report)
	if err != nil {
		return fmt.Errorf("encode host report: %w", err)
	}
	if _, err := r.Store.Put(ctx, r.Key, data, store.Any); err != nil {
		return fmt.Errorf("write host report: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored.at, r.stored.lifeIn = time.Now(), max(signOfLife, r.Heartbeat)
	r.stored.lifeIn += rand.N(r.stored.lifeIn / 4)
	r.writtenLocked(version)
	return nil
}
