package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// recorder keeps what is written to it; nothing else of a store works.
type recorder struct {
	store.Store
	interval time.Duration
	fail     atomic.Bool
	hang     atomic.Bool

	mu      sync.Mutex
	reports []state.HostReport
	at      []time.Duration
	start   time.Time
}

func (r *recorder) WriteInterval() time.Duration { return r.interval }

func (r *recorder) Put(_ context.Context, _ string, data []byte, _ store.Generation) (store.Generation, error) {
	if r.fail.Load() {
		return 0, errors.New("no store")
	}
	for r.hang.Load() {
		time.Sleep(time.Second)
	}
	var h state.HostReport
	if err := json.Unmarshal(data, &h); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, h)
	r.at = append(r.at, time.Since(r.start))
	return 1, nil
}

func startReporter(t *testing.T, s *recorder) *Reporter {
	t.Helper()
	s.start = time.Now()
	var limit uint64
	r := NewReporter(&Reporter{
		Store: s, Key: "k", Heartbeat: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
		Gone: func() bool { return false },
		TakeSeqs: func(n uint64) (uint64, error) {
			limit += n
			return limit, nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func TestReporterBeatsAndTellsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{}
		r := startReporter(t, s)
		r.Publish(state.HostReport{Generation: 1})
		time.Sleep(5 * time.Second)
		r.Publish(state.HostReport{Generation: 2})
		synctest.Wait()
		want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 5 * time.Second}
		if !slices.Equal(s.at, want) {
			t.Errorf("written at %v, want %v", s.at, want)
		}
		for i, h := range s.reports {
			if h.Seq != uint64(i+1) {
				t.Errorf("report %d has number %d", i, h.Seq)
			}
		}
	})
}

func TestReporterLeavesTheStoreItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{interval: time.Second}
		r := startReporter(t, s)
		for g := range 35 {
			r.Publish(state.HostReport{Generation: int64(g)})
			time.Sleep(100 * time.Millisecond)
		}
		if err := r.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}
		if !slices.Equal(s.at, want) {
			t.Errorf("written at %v, want %v", s.at, want)
		}
		if last := s.reports[len(s.reports)-1]; last.Generation != 34 {
			t.Errorf("the last report written is of generation %d", last.Generation)
		}
	})
}

func TestReporterTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{}
		s.fail.Store(true)
		r := startReporter(t, s)
		r.Publish(state.HostReport{Generation: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush without a store says %v", err)
		}
		s.fail.Store(false)
		if err := r.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if len(s.reports) != 1 || s.reports[0].Generation != 1 {
			t.Errorf("written: %+v", s.reports)
		}
	})
}
