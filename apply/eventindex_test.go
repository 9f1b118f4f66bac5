package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/events"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// countedStore counts reads and writes.
type countedStore struct {
	store.Store
	gets, puts atomic.Int64
}

func (s *countedStore) Get(ctx context.Context, key string) (store.Object, error) {
	s.gets.Add(1)
	return s.Store.Get(ctx, key)
}

func (s *countedStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	s.puts.Add(1)
	return s.Store.Put(ctx, key, data, want)
}

func jobEvent(job string, at time.Time) state.Event {
	addr, err := schema.ParseAddress(job)
	if err != nil {
		panic(err)
	}
	return state.Event{At: at, Kind: state.EventJob, Addr: addr, Text: "something happened"}
}

// readAbout are the texts of the events about a job, and how many objects were read for them.
func readAbout(t *testing.T, s *countedStore, job string) (got []string, reads int64) {
	t.Helper()
	before := s.gets.Load()
	all, err := events.Reader(s, []string{job}, 0).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := events.Filter([]string{job}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if wanted(e) {
			got = append(got, e.Addr.String())
		}
	}
	return got, s.gets.Load() - before
}

// The events of a job are found without reading those of others: of a hundred chunks those that
// have some, the index, the chunk that still grows, and the newest ones that the index does not have yet.
func TestEventsOfAJobReadFewChunks(t *testing.T) {
	s := &countedStore{Store: storetest.NewMemory()}
	r := &Recorder{Store: s, Epoch: 7, Valid: func() error { return nil }}
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for i := range 60*chunkEvents + 10 {
		job := fmt.Sprintf("job.other[%d]", i%5000)
		if i == 7*chunkEvents+3 || i == 41*chunkEvents {
			job = "module.lab.job.mine[2]"
		}
		r.Add(jobEvent(job, now.Add(time.Duration(i)*time.Millisecond)))
		if i%chunkEvents == 0 {
			if err := r.Save(t.Context(), now.Add(time.Duration(i)*time.Hour), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Save(t.Context(), now, true); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"module.lab.job.mine[2]", "module.lab.job.mine", "module.lab"} {
		if got, reads := readAbout(t, s, name); len(got) != 2 || reads >= 2+1+1+unwrittenChunks {
			t.Errorf("%s: got %q by %d reads, want 2 events by few", name, got, reads)
		}
	}
	if got, reads := readAbout(t, s, "job.silent"); len(got) != 0 || reads >= 1+1+unwrittenChunks {
		t.Errorf("of a job without events: got %q by %d reads, want none by few", got, reads)
	}
	if err := s.Delete(t.Context(), store.EventIndexKey); err != nil {
		t.Fatal(err)
	}
	if got, reads := readAbout(t, s, "module.lab.job.mine[2]"); len(got) != 2 || reads != 62 {
		t.Errorf("without an index: got %q by %d reads, want 2 events by all 62", got, reads)
	}
}

// Chunks of former holders, which have no index, get one from the next.
func TestFormerChunksAreIndexed(t *testing.T) {
	s := &countedStore{Store: storetest.NewMemory()}
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for i := range 100 {
		data, err := store.EncodeEvents([]state.Event{jobEvent(fmt.Sprintf("job.n%d", i), now)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.EventsKey(uint64(i+1), 0), data, store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	if _, reads := readAbout(t, s, "job.n3"); reads != 101 {
		t.Errorf("before: got %d reads", reads)
	}
	for epoch := uint64(101); epoch < 104; epoch++ {
		r := &Recorder{Store: s, Epoch: epoch, Valid: func() error { return nil }}
		r.Add(jobEvent("job.last", now))
		if err := r.Save(t.Context(), now, true); err != nil {
			t.Fatal(err)
		}
	}
	if got, reads := readAbout(t, s, "job.n3"); len(got) != 1 || reads > 1+1+unindexedChunks+3 {
		t.Errorf("after: got %q by %d reads", got, reads)
	}
}

// With an index, whatever it has and whatever has become of the chunks since, a reader returns what
// one without an index does.
func TestIndexHidesNoEvent(t *testing.T) {
	names := []string{
		"job.a", "job.a[1]", `job.a["x,y"]`, "job_group.g.job.a", "module.m.job.a", "module.m[0].job.a[1]", "module.m.module.n[\"k\"].job_group.g.job.b", "reservation.a", "namespace.lab",
	}
	asked := append(slices.Clone(names), "job_group.g", "module.m", "module.m[0]", "module.m.module.n", "job.b")
	rapid.Check(t, func(rt *rapid.T) {
		s := &countedStore{Store: storetest.NewMemory()}
		now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
		var all []string
		for epoch := uint64(1); epoch <= 30; epoch++ {
			r := &Recorder{Store: s, Epoch: epoch, Valid: func() error { return nil }}
			for range rapid.IntRange(0, 3).Draw(rt, "saves") {
				name := rapid.SampledFrom(names).Draw(rt, "name")
				all = append(all, name)
				r.Add(jobEvent(name, now))
				if err := r.Save(t.Context(), now, true); err != nil {
					rt.Fatal(err)
				}
			}
		}
		for _, name := range asked {
			addr, err := schema.ParseAddress(name)
			if err != nil {
				rt.Fatal(err)
			}
			want := 0
			for _, is := range all {
				if addr.Contains(jobEvent(is, now).Addr) {
					want++
				}
			}
			if got, _ := readAbout(t, s, name); len(got) != want {
				rt.Fatalf("%s: got %s, want %d of %s", name, strings.Join(got, " "), want, strings.Join(all, " "))
			}
		}
	})
}
