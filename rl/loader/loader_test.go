package loader_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

func begin() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newLoader(t *testing.T, cfg loader.Config) *loader.Loader {
	t.Helper()
	l, err := loader.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// next leases a task to a worker and completes it; its ID, or "none".
func next(l *loader.Loader, worker string) string {
	grant, ok := l.Next(worker, "1", begin())
	if !ok {
		return "none"
	}
	l.Complete(grant.Lease.ID)
	return grant.Lease.TaskID
}

// all are the tasks until there is none.
func all(l *loader.Loader) []string {
	var out []string
	for task := next(l, "w"); task != "none"; task = next(l, "w") {
		out = append(out, task)
	}
	return out
}

func TestN9_N10_ItemsRepeatAsGroups(t *testing.T) {
	cfg := loader.Config{Length: 2, Repeat: 3}
	l := newLoader(t, cfg)
	for _, want := range []string{"0/0/0", "0/0/1", "0/0/2", "0/1/0"} {
		grant, _ := l.Next("w", "1", begin())
		if grant.Lease.TaskID != want || grant.Entry.GroupID() != want[:3] {
			t.Errorf("task %s of group %s, want %s of %s", grant.Lease.TaskID, grant.Entry.GroupID(), want, want[:3])
		}
		l.Complete(grant.Lease.ID)
	}
	cfg = loader.Config{Length: 50, Repeat: 2, Shuffle: true, Seed: 7, Passes: 2}
	first, second := all(newLoader(t, cfg)), all(newLoader(t, cfg))
	if !slices.Equal(first, second) || len(first) != 200 {
		t.Errorf("two runs with one seed have different orders, or %d tasks instead of 200", len(first))
	}
	if slices.Equal(first[:2], []string{"0/0/0", "0/0/1"}) && slices.Equal(first[2:4], []string{"0/1/0", "0/1/1"}) {
		t.Errorf("the order is that of the data: %q", first[:6])
	}
	if len(slices.Compact(slices.Sorted(slices.Values(first)))) != 200 {
		t.Error("a task comes twice")
	}
	cfg.Seed = 8
	if slices.Equal(first, all(newLoader(t, cfg))) {
		t.Error("another seed has the same order")
	}
}

func TestN11_ValidationDataAreNotRepeated(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 2, Repeat: 3, Route: rl.RouteValidate})
	if got := all(l); !slices.Equal(got, []string{"0/0/0", "0/1/0"}) {
		t.Errorf("tasks %q, want each item once", got)
	}
}

func TestN12_N13_BatchesWaitForUnlock(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 6, BatchSize: 2, KeepBatchOrder: true})
	if got := all(l); !slices.Equal(got, []string{"0/0/0", "0/1/0"}) { // the first needs no unlock
		t.Errorf("tasks %q, want the first batch", got)
	}
	if s := l.Status(); !s.Quiet() || s.Finished || !s.Locked || l.CanReturnItem() {
		t.Errorf("%+v after the first batch; want quiet and locked, not finished", s)
	}
	l.Unlock()
	if s := l.Status(); s.Drained || !s.Locked || l.Len() != 4 { // loaded at once, and the one after it waits again
		t.Errorf("%+v after the unlock, %d tasks; want the second batch to be loaded", s, l.Len())
	}
	l.Unlock() // again: the first answer was lost
	if got := all(l); !slices.Equal(got, []string{"0/2/0", "0/3/0"}) {
		t.Errorf("tasks %q, want the second batch", got)
	}
	early := newLoader(t, loader.Config{Length: 4, BatchSize: 2, KeepBatchOrder: true})
	next(early, "w")
	early.Unlock() // in the middle of a batch: the next one may follow it
	if got := all(early); !slices.Equal(got, []string{"0/1/0", "0/2/0", "0/3/0"}) {
		t.Errorf("tasks %q, want the rest of the first batch and the second", got)
	}
}

func TestN14_AddedItems(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 1})
	l.Add([]byte("back"), false)
	l.Add([]byte("front"), true)
	grant, _ := l.Next("w", "1", begin())
	if string(grant.Entry.Added) != "front" || grant.Lease.TaskID != "added/1/0" {
		t.Errorf("the next task is %s with %q, want the item that was added in front", grant.Lease.TaskID, grant.Entry.Added)
	}
	l.Complete(grant.Lease.ID)
	if got := all(l); !slices.Equal(got, []string{"added/0/0", "0/0/0"}) {
		t.Errorf("tasks %q, want the added item behind what was buffered", got)
	}
}

func TestN15_N16_Exhausted(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 1})
	if l.IsFinished() || !l.CanReturnItem() || l.Len() != 1 {
		t.Error("a loader that has not begun is finished, or has no task")
	}
	grant, _ := l.Next("w", "1", begin())
	if s := l.Status(); !s.Finished || s.Quiet() || s.Leased != 1 {
		t.Errorf("%+v while the last task is leased; want finished but not quiet", s)
	}
	l.Complete(grant.Lease.ID)
	if got := next(l, "w"); got != "none" || !l.Status().Quiet() || l.Len() != 0 {
		t.Errorf("task %s, %+v; want none and quiet", got, l.Status())
	}
	empty := newLoader(t, loader.Config{})
	if !empty.IsFinished() || next(empty, "w") != "none" {
		t.Error("a loader without data is not finished")
	}
}

func TestN17_Reset(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 4, BatchSize: 2, KeepBatchOrder: true, Route: rl.RouteValidate})
	next(l, "w")
	held, _ := l.Next("w", "1", begin())
	l.Reset()
	if s := l.Status(); s.Drained || s.Leased != 0 || s.Locked || s.Position != (rl.Position{}) || l.Complete(held.Lease.ID) {
		t.Errorf("%+v after a reset; want the beginning, without leases", s)
	}
	if got := all(l); !slices.Equal(got, []string{"0/0/0", "0/1/0"}) {
		t.Errorf("tasks %q, want the first batch again", got)
	}
}

func TestN18_SkipBatches(t *testing.T) {
	cfg := loader.Config{Length: 5, BatchSize: 2, Passes: 2}
	l := newLoader(t, cfg)
	if n, err := l.Skip(4); n != 4 || err != nil {
		t.Errorf("skipped %d, %v; want 4", n, err)
	}
	if got := all(l); !slices.Equal(got, []string{"1/2/0", "1/3/0", "1/4/0"}) {
		t.Errorf("tasks %q, want those from the second batch of the second pass", got)
	}
	if _, err := l.Skip(1); !errors.As(err, new(*loader.StartedError)) {
		t.Errorf("skip after the begin: %v, want a StartedError", err)
	}
	past := newLoader(t, cfg)
	if n, err := past.Skip(100); n != 6 || err != nil || !past.IsFinished() {
		t.Errorf("skipped %d, %v; want the 6 that there are", n, err)
	}
}

func TestDropLast(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 5, BatchSize: 2, DropLast: true, Passes: 2})
	if n := l.Len(); n != 8 || len(all(l)) != 8 {
		t.Errorf("%d tasks, want 4 in each of two passes", n)
	}
}

func TestN43_DeadWorkersTaskGoesToAnother(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 4, LeaseTTL: time.Minute})
	one, _ := l.Next("one", "1", begin())
	two, _ := l.Next("two", "1", begin().Add(time.Second))
	l.Renew("two", "1", begin().Add(time.Minute))
	if ids := l.Expired(begin().Add(time.Minute)); !slices.Equal(ids, []string{one.Lease.ID}) {
		t.Errorf("expired %q, want the lease that was not renewed", ids)
	}
	if due, ok := l.NextExpiry(); !ok || !due.Equal(begin().Add(time.Minute)) {
		t.Errorf("the next expiry is at %s, %t", due, ok)
	}
	l.PutBackAll(l.Expired(begin().Add(time.Minute)))
	if n := l.ReleaseWorker("two", "1"); n != 1 {
		t.Errorf("%d leases of a worker that died, want 1", n)
	}
	if l.Renew("two", "1", begin()) > 0 || l.Complete(two.Lease.ID) || l.PutBack(two.Lease.ID) {
		t.Error("a lease that ended stands")
	}
	if got := all(l); !slices.Equal(got, []string{"0/1/0", "0/0/0", "0/2/0", "0/3/0"}) {
		t.Errorf("tasks %q, want those that were put back first", got)
	}
}

func TestN40_OneLeaseOfAWorker(t *testing.T) {
	l := newLoader(t, loader.Config{Length: 2})
	first, _ := l.Next("w", "1", begin())
	again, ok := l.Next("w", "1", begin())
	if !ok || again.IsNew || again.Lease != first.Lease {
		t.Errorf("the same worker gets %+v, want its lease %+v again", again, first)
	}
	l.Next("w", "1", begin().Add(time.Hour)) // it did not get the answer, so that it lives
	if ids := l.Expired(begin().Add(time.Hour)); len(ids) != 0 {
		t.Errorf("leases %q expire of a worker that asks", ids)
	}
	after, _ := l.Next("w", "2", begin()) // it has restarted
	if after.Lease.TaskID != first.Lease.TaskID || after.Lease.ID == first.Lease.ID || l.Status().Leased != 1 {
		t.Errorf("after its restart the worker has %+v and there are %d leases; want the same task, newly leased", after.Lease, l.Status().Leased)
	}
}

func TestRewindEndsLeases(t *testing.T) {
	cfg := loader.Config{Length: 6, BatchSize: 2, KeepBatchOrder: true, Instance: "i"}
	l := newLoader(t, cfg)
	next(l, "w")
	held, _ := l.Next("w", "1", begin())
	checkpoint := l.Snapshot()
	l.Complete(held.Lease.ID)
	l.Unlock()
	stale, _ := l.Next("w", "1", begin())
	if err := l.Rewind(checkpoint, 3); err != nil {
		t.Fatal(err)
	}
	if l.Complete(stale.Lease.ID) {
		t.Error("a lease outlives the rewind")
	}
	grant, _ := l.Next("w", "1", begin())
	if grant.Lease.TaskID != "0/1/0" || grant.Lease.Epoch != 3 || grant.Lease.ID == held.Lease.ID || grant.Lease.ID == stale.Lease.ID {
		t.Errorf("the next lease is %+v, want a new one of the task that was rolled out at the checkpoint, in epoch 3", grant.Lease)
	}
	other := newLoader(t, loader.Config{Length: 7})
	if err := other.Restore(checkpoint); !errors.As(err, new(*loader.ChangedError)) {
		t.Errorf("restored with other data: %v, want a ChangedError", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []loader.Config{{Length: -1}, {Length: 2, BatchSize: 3, DropLast: true}, {Length: 1, Repeat: -1}} {
		if _, err := loader.New(cfg); err == nil {
			t.Errorf("%+v is accepted, want an error", cfg)
		}
	}
}
