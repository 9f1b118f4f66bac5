package roles_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
)

func TestN9_N14_TasksOverTheWire(t *testing.T) {
	l := newLoader(t, loader.Config{Repeat: 2}, source.Mock(2))
	h := serve(t, map[string]any{"data_loader": l}).actor(t, "data_loader")
	task := call[*rl.Task](t, h, "get_next_item", "rollout_worker_0", "1")
	if task == nil || task.Item["group_id"] != "0/0" || task.Item["run_id"] != int64(0) || task.Item["index"] != int64(0) ||
		task.Item["prompt"] != "mock prompt 0" || task.Lease.TaskID != "0/0/0" || task.Lease.Route != rl.RouteTrain {
		t.Fatalf("the first task is %+v", task)
	}
	if status := call[rl.LoaderStatus](t, h, "status"); status.Leased != 1 || status.Drained {
		t.Errorf("%+v, want one lease", status)
	}
	call[any](t, h, "add_item_front", map[string]any{"prompt": "front", "image": make([]byte, 20_000), "group_id": "mine"})
	call[any](t, h, "add_item", map[string]any{"prompt": "back"})
	call[bool](t, h, "complete", task.Lease.ID, "success")
	front := call[*rl.Task](t, h, "get_next_item", "rollout_worker_0", "1")
	image, _ := front.Item["image"].([]byte)
	if front.Item["prompt"] != "front" || front.Item["group_id"] != "mine" || len(image) != 20_000 {
		t.Errorf("the next item is %q of group %v with %d bytes, want what was added in front", front.Item["prompt"], front.Item["group_id"], len(image))
	}
	if n := call[int](t, h, "size"); n != 4 {
		t.Errorf("%d tasks are left, want 4", n)
	}
	if item := call[map[string]any](t, h, "get_item", 1); item["prompt"] != "mock prompt 1" {
		t.Errorf("item 1 is %v", item)
	}
	for _, args := range [][]any{{"complete", task.Lease.ID, "done"}, {"get_next_item", "", "1"}, {"get_item", 7}, {"skip_batches", 1}} {
		method, _ := args[0].(string)
		if _, err := actorrpc.Call[any](t.Context(), h, method, args[1:]...); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

func TestN36_EachGetIsAFreshCopy(t *testing.T) {
	l := newLoader(t, loader.Config{}, source.Mock(1))
	first, err := l.GetNextItem("w", "1")
	if err != nil {
		t.Fatal(err)
	}
	first.Item["prompt"] = "changed by the worker"
	if ok, err := l.PutBack(first.Lease.ID); !ok || err != nil {
		t.Fatalf("put back: %t, %v", ok, err)
	}
	again, err := l.GetNextItem("w", "1")
	if err != nil || again.Item["prompt"] != "mock prompt 0" {
		t.Errorf("the task comes again as %v, %v; want it as it was", again, err)
	}
}

// A lease that its worker does not renew goes to another; one that it renews stays.
func TestN43_LeaseEndsWithItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := roles.NewLoader(roles.LoaderConfig{
			Loader: loader.Config{LeaseTTL: time.Minute}, Source: source.Mock(9), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var tending sync.WaitGroup
		tending.Go(func() {
			if err := roles.TendLoader(ctx, l); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		lost, _ := l.GetNextItem("dead", "1")
		kept, _ := l.GetNextItem("alive", "1")
		for range 3 {
			time.Sleep(25 * time.Second)
			if l.Renew("alive", "1") != 1 {
				t.Error("a lease that is renewed has ended")
			}
		}
		synctest.Wait()
		if status := l.Status(); status.Leased != 1 {
			t.Errorf("%d leases after 75 s, want the one that is renewed", status.Leased)
		}
		next, _ := l.GetNextItem("other", "1")
		if next.Lease.TaskID != lost.Lease.TaskID || next.Lease.TaskID == kept.Lease.TaskID {
			t.Errorf("the next task is %s, want %s", next.Lease.TaskID, lost.Lease.TaskID)
		}
		if ok, err := l.Complete(lost.Lease.ID, "success"); ok || err != nil {
			t.Errorf("the dead worker completes its task: %t, %v; want false", ok, err)
		}
		stop()
		tending.Wait()
	})
}

// What a loader has answered is there after a restart: leases, tasks that were added, the position, the lock.
func TestLoaderContinuesItsJournal(t *testing.T) {
	dir := t.TempDir()
	open := func() (*roles.Loader, func()) {
		j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: dir, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		l, err := roles.NewLoader(roles.LoaderConfig{
			Loader: loader.Config{BatchSize: 2, KeepBatchOrder: true, Shuffle: true}, Source: source.Mock(6), Journal: j, Records: records, Now: now,
			Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return l, func() {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	l, end := open()
	if n, err := l.SkipBatches(1); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	one, _ := l.GetNextItem("one", "1")
	two, _ := l.GetNextItem("two", "1")
	for range 2 { // the answer to the first was lost
		if err := l.AddItem(rl.Item{"prompt": "added"}, "id"); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := l.Complete(one.Lease.ID, "fail"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := l.PutBack(two.Lease.ID); err != nil {
		t.Fatal(err)
	}
	two, _ = l.GetNextItem("two", "1")
	want := l.Status()
	end()
	l, end = open()
	defer end()
	if err := l.AddItem(rl.Item{"prompt": "added"}, "id"); err != nil || l.Size() != 3 {
		t.Errorf("%d tasks, %v; want the added one, once, and the two of the last batch", l.Size(), err)
	}
	if got := l.Status(); got != want || !got.Locked || got.Leased != 1 {
		t.Errorf("after the restart %+v, want %+v", got, want)
	}
	if again, err := l.GetNextItem("two", "1"); err != nil || again.Lease != two.Lease {
		t.Errorf("after the restart two has %+v, %v; want its lease %+v", again, err, two.Lease)
	}
	added, err := l.GetNextItem("one", "1")
	if err != nil || added.Item["prompt"] != "added" || added.Lease.ID == one.Lease.ID {
		t.Errorf("the next task is %+v, %v; want the added one", added, err)
	}
	snapshot, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	other := newLoader(t, loader.Config{}, source.Mock(7))
	if err := other.Restore(snapshot); !errors.As(err, new(*loader.ChangedError)) {
		t.Errorf("restored with other data: %v, want a ChangedError", err)
	}
	if err := l.Restore(snapshot, int64(2)); err != nil {
		t.Fatal(err)
	}
	if status := l.Status(); status.Leased != 0 || status.Drained {
		t.Errorf("after a rewind %+v, want no leases", status)
	}
	if task, err := l.GetNextItem("three", "1"); err != nil || task.Lease.Epoch != 2 || task.Lease.TaskID != two.Lease.TaskID {
		t.Errorf("after a rewind the next task is %+v, %v; want that of two, in epoch 2", task, err)
	}
}
