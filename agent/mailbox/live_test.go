package mailbox

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// link is a stream that acknowledges at once while it is up.
type link struct {
	mu      sync.Mutex
	up      bool
	acked   time.Time
	reports []state.HostReport
	stored  time.Duration
}

func (l *link) Report(r state.HostReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		l.reports, l.acked = append(l.reports, r), time.Now()
	}
}

func (l *link) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports)
}

func (l *link) Live() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.acked.IsZero() && time.Since(l.acked) < l.Heartbeat()+3*time.Second
}

func (l *link) Heartbeat() time.Duration { return 4 * time.Second }

func (l *link) Beat() time.Duration { return l.Heartbeat() }

func (l *link) StoreHeartbeat() time.Duration { return l.stored }

func (l *link) set(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = up
}

// While the stream is live the store gets what must not get lost, and a sign of life each
// minute; without it the store's way goes on within ten seconds.
func TestReporterBesideAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &recorder{interval: time.Second, start: time.Now()}, &link{up: true}
		var limit uint64
		r := NewReporter(&Reporter{
			Store: s, Key: "k", Heartbeat: 2 * time.Second, Log: slog.New(slog.DiscardHandler), Gone: func() bool { return false },
			TakeSeqs: func(n uint64) (uint64, error) { limit += n; return limit, nil },
			Stream:   l, Durable: func(before, r *state.HostReport) bool {
				return before.Generation != r.Generation || before.Task != r.Task
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { r.Run(ctx) })
		defer done.Wait()
		defer cancel()

		written := func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.reports) }
		r.Publish(state.HostReport{Generation: 1})
		time.Sleep(time.Hour + 700*time.Millisecond) // between two heartbeats
		if n := written(); n < 45 || n > 70 {
			t.Errorf("in a quiet hour the store was written %d times, want once a minute", n)
		}
		before, sent := written(), l.count()
		r.Publish(state.HostReport{Generation: 1, Task: &state.TaskReport{State: schema.TaskFailed}})
		synctest.Wait()
		if l.count() != sent+1 {
			t.Errorf("a task's end was sent %d times at once, want once", l.count()-sent)
		}
		time.Sleep(s.interval) // the sign of life of the minute may have been written just before
		if n := written() - before; n < 1 || n > 2 {
			t.Errorf("a task's end was written %d times within a second, want once, or with the sign of life", n)
		}
		time.Sleep(2 * time.Second)
		before = written()
		r.Publish(state.HostReport{Generation: 1, Task: r.report.Task, Notice: "for people"}) // as Durable has it
		if err := r.Flush(t.Context()); err != nil || written() != before {
			t.Errorf("what need not be kept was written %d times, %v", written()-before, err)
		}

		// A store that hangs silences no host whose stream works.
		s.hang.Store(true)
		sent = l.count()
		time.Sleep(5 * time.Minute)
		if n := l.count() - sent; n < 70 || !l.Live() {
			t.Errorf("%d heartbeats were sent in five minutes without a store, live: %t", n, l.Live())
		}
		s.hang.Store(false)
		time.Sleep(time.Minute)

		l.set(false)
		before = written()
		for range 10 {
			time.Sleep(10 * time.Second)
			if n := written(); n < before+1 {
				t.Errorf("%d reports were written in 10 s without a stream", n-before)
			}
			before = written()
		}
		l.set(true)
		time.Sleep(10 * time.Second)
		before = written()
		time.Sleep(30 * time.Second)
		if n := written() - before; n > 1 {
			t.Errorf("%d reports were written in 30 s after the stream came back", n)
		}
		cancel()
		done.Wait()
		last := uint64(0)
		for _, report := range s.reports {
			if report.Seq <= last {
				t.Errorf("number %d was written after %d", report.Seq, last)
			}
			last = report.Seq
		}
	})
}

// The controller of many hosts states a longer time between two reports to the store. They lose
// their streams together, and do not write together.
func TestReporterOfManyHostsWithoutAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		const hosts = 100
		var stores []*recorder
		var links []*link
		for range hosts {
			s, l := &recorder{interval: time.Second, start: time.Now()}, &link{up: true, stored: 15 * time.Second}
			stores, links = append(stores, s), append(links, l)
			var limit uint64
			r := NewReporter(&Reporter{
				Store: s, Key: "k", Heartbeat: 2 * time.Second, Log: slog.New(slog.DiscardHandler), Gone: func() bool { return false },
				TakeSeqs: func(n uint64) (uint64, error) { limit += n; return limit, nil },
				Stream:   l, Durable: func(before, r *state.HostReport) bool { return before.Generation != r.Generation },
			})
			running.Go(func() { r.Run(ctx) })
			r.Publish(state.HostReport{Generation: 1})
		}
		time.Sleep(10 * time.Minute)
		for _, l := range links {
			l.set(false)
		}
		written := func() (total, least int) {
			least = hosts
			for _, s := range stores {
				s.mu.Lock()
				n := len(s.reports)
				s.reports = s.reports[:0]
				s.mu.Unlock()
				total, least = total+n, min(least, n)
			}
			return total, least
		}
		written()
		time.Sleep(12 * time.Second) // 3 to 5 s after an acknowledgement counts no more
		if total, _ := written(); total > hosts*8/10 {
			t.Errorf("%d of %d hosts wrote to the store at once", total, hosts)
		}
		time.Sleep(20 * time.Second)
		written()
		time.Sleep(time.Minute)
		if total, least := written(); least < 3 || total > hosts*60/14 {
			t.Errorf("in a minute %d hosts wrote %d times, and one of them %d times, want each 4 times", hosts, total, least)
		}
	})
}

// While the controller sends assignments the store is hardly read, and an older version never
// follows a newer one; without it they are read as ever.
func TestPollerBesideAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, live := &reads{Memory: storetest.NewMemory(), interval: time.Second}, true
		var mu sync.Mutex
		p := NewPoller(&Poller{Store: s, Slice: "s", Log: slog.New(slog.DiscardHandler), Live: func() bool { mu.Lock(); defer mu.Unlock(); return live }})
		put := func(generation int64) (store.Generation, []byte) {
			data, err := store.Encode(&state.Assignment{Slice: "s", Generation: generation})
			if err != nil {
				t.Fatal(err)
			}
			object, err := s.Put(t.Context(), store.AssignKey("s"), data, store.Any)
			if err != nil {
				t.Fatal(err)
			}
			return object, data
		}
		old, oldData := put(1)
		out := make(chan state.Assignment, 10)
		go p.Run(t.Context(), out)
		synctest.Wait()
		if got := <-out; got.Generation != 1 {
			t.Errorf("first read %+v", got)
		}
		before := s.count.Load()
		time.Sleep(time.Hour)
		if n := s.count.Load() - before; n > 4 {
			t.Errorf("in a quiet hour the assignment was read %d times", n)
		}
		p.Expect() // it will be sent
		next, data := put(2)
		p.Push(next, data)
		p.Push(old, oldData) // late
		p.Push(next, data)   // doubled
		synctest.Wait()
		if got := <-out; got.Generation != 2 || p.Known() != next {
			t.Errorf("sent %+v, known by %d, want generation 2", got, p.Known())
		}
		newest, _ := put(3)
		p.Push(newest, nil) // to be read
		synctest.Wait()
		if got := <-out; got.Generation != 3 {
			t.Errorf("read %+v, want generation 3", got)
		}
		p.Push(next, data)
		time.Sleep(time.Minute)
		if len(out) > 0 {
			t.Errorf("an older assignment follows: %+v", <-out)
		}
		mu.Lock()
		live = false
		mu.Unlock()
		put(4)
		time.Sleep(2 * time.Second)
		if got := <-out; got.Generation != 4 {
			t.Errorf("without a stream read %+v, want generation 4", got)
		}
	})
}
