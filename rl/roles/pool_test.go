package roles_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/trajectory"
)

func TestN34_BatchIsReportedOnceBeforeItIsGiven(t *testing.T) {
	weights := &notified{}
	pool := newPool(t, trajectory.Config{Name: "trajectory_pool", BatchSize: 2, Ready: rl.BatchSizeReached}, fixed{}, weights)
	h := serve(t, map[string]any{"trajectory_pool": pool}).actor(t, "trajectory_pool")
	for i := range 4 {
		if got := call[string](t, h, "put_trajectory", rl.Header{TaskID: rl.TaskID(0, i, 0)}, []byte{byte(i)}); got != "success" {
			t.Fatalf("put %d: %s", i, got)
		}
	}
	weights.err = errors.New("no controller")
	if _, err := actorrpc.Call[*rl.Batch](t.Context(), h, "get_batch", nil, nil, "processor"); err == nil {
		t.Fatal("a batch is given of which the weight sync controller does not know")
	}
	weights.err = nil
	first := call[*rl.Batch](t, h, "get_batch", nil, nil, "processor")
	again := call[*rl.Batch](t, h, "get_batch", nil, nil, "processor")
	if first == nil || again == nil || first.ID != again.ID || !slices.Equal(weights.all(), []string{first.ID}) {
		t.Fatalf("batches %+v and %+v, reported %q; want one, reported once", first, again, weights.all())
	}
	second := call[*rl.Batch](t, h, "get_batch") // without a consumer it counts as acknowledged
	if second == nil || second.ID == first.ID || len(weights.all()) != 2 {
		t.Fatalf("the next batch is %+v, reported %q", second, weights.all())
	}
	if call[*rl.Batch](t, h, "get_batch_any") != nil || call[bool](t, h, "is_empty") {
		t.Error("want no third batch, and a pool that is not empty before the first is acknowledged")
	}
	if !call[bool](t, h, "ack", first.ID) || !call[bool](t, h, "is_empty") || !call[bool](t, h, "is_empty", nil) {
		t.Error("the pool is not empty after all was acknowledged")
	}
	if got := call[[]string](t, h, "get_model_tags"); !slices.Equal(got, []string{"default"}) {
		t.Errorf("model tags %q", got)
	}
}

// lateLoader is quiet, but a trajectory is put while its status is being read.
type lateLoader struct {
	pool *roles.Pool
	once sync.Once
}

func (l *lateLoader) WaitQuiet(ctx context.Context, _ float64) (rl.LoaderStatus, error) {
	return l.Status(ctx)
}

func (l *lateLoader) Status(ctx context.Context) (rl.LoaderStatus, error) {
	l.once.Do(func() {
		_, _ = l.pool.PutTrajectory(ctx, rl.Header{TaskID: rl.TaskID(0, 0, 1)}, []byte("late"))
	})
	return rl.LoaderStatus{Drained: true}, nil
}

func TestN28_BatchHasAllThatWasLoaded(t *testing.T) {
	late := &lateLoader{}
	late.pool = newPool(t, trajectory.Config{}, late, &notified{})
	if _, err := late.pool.PutTrajectory(t.Context(), rl.Header{TaskID: rl.TaskID(0, 0, 0)}, []byte("early")); err != nil {
		t.Fatal(err)
	}
	batch, err := late.pool.GetBatch(t.Context())
	if err != nil || batch == nil || len(batch.Payloads) != 2 {
		t.Fatalf("batch %+v, %v; want both trajectories", batch, err)
	}
}

// Workers over sockets roll out three batches of a loader that waits for an unlock each time, while some die; each batch has
// the tasks of one loaded batch, in the order of the data.
func TestLoaderAndPoolTogether(t *testing.T) {
	from := newLoader(t, loader.Config{BatchSize: 4, Repeat: 2, KeepBatchOrder: true}, source.Mock(12))
	pool := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 2}, direct{from}, &notified{})
	s := serve(t, map[string]any{"data_loader": from, "trajectory_pool": pool})
	for batch := range 3 {
		var workers sync.WaitGroup
		for w := range 5 {
			workers.Go(func() { rollOut(t, s, fmt.Sprintf("rollout_worker_%d", w), w == batch) })
		}
		workers.Wait()
		call[any](t, s.actor(t, "data_loader"), "release_worker", fmt.Sprintf("rollout_worker_%d", batch), "1")
		rollOut(t, s, "rollout_worker_9", false)
		got := call[*rl.Batch](t, s.actor(t, "trajectory_pool"), "get_batch", nil, nil, "processor")
		if got == nil || len(got.Payloads) != 8 {
			t.Fatalf("batch %d: %+v, %+v; want 8 trajectories", batch, got, from.Status())
		}
		for i, h := range got.Headers {
			if want := rl.TaskID(0, batch*4+i/2, i%2); h.TaskID != want || string(got.Payloads[i]) != want {
				t.Errorf("batch %d, place %d: task %s with %s, want %s", batch, i, h.TaskID, got.Payloads[i], want)
			}
		}
		call[bool](t, s.actor(t, "trajectory_pool"), "ack", got.ID)
		call[any](t, s.actor(t, "data_loader"), "unlock_for_next_batch")
	}
	if status := from.Status(); !status.Finished || !status.Quiet() {
		t.Errorf("the loader is %+v at the end", status)
	}
}

// rollOut rolls out tasks until there is none. A worker that dies does so between its first put and completing the task.
func rollOut(t *testing.T, s *served, worker string, dies bool) {
	t.Helper()
	from, pool := s.actor(t, "data_loader"), s.actor(t, "trajectory_pool")
	for {
		task, err := actorrpc.Call[*rl.Task](t.Context(), from, "get_next_item", worker, "1")
		if err != nil {
			t.Error(err)
			return
		}
		if task == nil {
			return
		}
		group, _ := task.Item["group_id"].(string)
		h := rl.Header{Keys: map[string]any{"group_id": group}, TaskID: task.Lease.TaskID, Lease: task.Lease.ID}
		if got, err := actorrpc.Call[string](t.Context(), pool, "put_trajectory", h, []byte(task.Lease.TaskID)); err != nil || got != "success" {
			t.Errorf("put: %s, %v", got, err)
			return
		}
		if dies {
			return
		}
		if ok, err := actorrpc.Call[bool](t.Context(), from, "complete", task.Lease.ID, "success"); err != nil || !ok {
			t.Errorf("complete: %t, %v", ok, err)
			return
		}
	}
}

// A full pool answers nothing until a batch is acknowledged; it never holds more than its limit.
func TestPutWaitsForRoom(t *testing.T) {
	const limit = 40_000
	pool := newPool(t, trajectory.Config{BatchSize: 4, Ready: rl.BatchSizeReached, MaxBytes: limit}, fixed{}, &notified{})
	s := serve(t, map[string]any{"trajectory_pool": pool})
	h := s.actor(t, "trajectory_pool")
	const puts = 64
	outcomes := make(chan error, puts)
	for i := range puts {
		go func() {
			got, err := actorrpc.Call[string](t.Context(), h, "put_trajectory", rl.Header{TaskID: rl.TaskID(0, i, 0)}, make([]byte, 4<<10))
			if err == nil && got != "success" {
				err = fmt.Errorf("put %d: %s", i, got)
			}
			outcomes <- err
		}()
	}
	answered, given := 0, 0
	for given < puts {
		for answered < given+4 { // so many must have been answered for a batch to be there
			if err := <-outcomes; err != nil {
				t.Fatal(err)
			}
			answered++
		}
		if status := call[trajectory.Status](t, h, "status"); status.Bytes > limit {
			t.Fatalf("%+v: more than %d bytes", status, limit)
		}
		batch := call[*rl.Batch](t, h, "get_batch", nil, nil, "processor")
		if batch == nil {
			t.Fatalf("no batch after %d answers", answered)
		}
		given += len(batch.Payloads)
		call[bool](t, h, "ack", batch.ID)
	}
	if answered > puts {
		t.Errorf("%d answers", answered)
	}
}

// A put that waits is rolled out again once its model is locked, and ends with its caller.
func TestWaitingPutEnds(t *testing.T) {
	pool := newPool(t, trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached, MaxBytes: 1000}, fixed{}, &notified{})
	h := serve(t, map[string]any{"trajectory_pool": pool}).actor(t, "trajectory_pool")
	call[string](t, h, "put_trajectory", rl.Header{}, []byte("a"))
	waits := actorrpc.Go[string](t.Context(), h, "put_trajectory", rl.Header{}, []byte("b"))
	call[any](t, h, "notify_weight_sync_starting", "default")
	if got, err := waits.Result(t.Context()); err != nil || got != "re-rollout" {
		t.Errorf("the put that waited: %s, %v; want re-rollout", got, err)
	}
	call[any](t, h, "unlock_for_weight_sync", "default")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pool.PutTrajectory(ctx, rl.Header{}, []byte("c")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the wait ends with its caller", err)
	}
}

func TestUnusableArgumentsAreErrors(t *testing.T) {
	pool := newPool(t, trajectory.Config{}, fixed{}, &notified{})
	h := serve(t, map[string]any{"trajectory_pool": pool}).actor(t, "trajectory_pool")
	for _, args := range [][]any{{"get_batch", "512"}, {"get_batch", -1}, {"get_batch", nil, 7}, {"flush", "default", "keep"}, {"is_empty", 3}} {
		method, _ := args[0].(string)
		if _, err := actorrpc.Call[any](t.Context(), h, method, args[1:]...); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
