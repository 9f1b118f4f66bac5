package roles_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/trainbatch"
)

func TestN51_N52_TrainBatchesOverTheWire(t *testing.T) {
	pool, err := roles.NewTrainBatches(roles.TrainBatchesConfig{Pool: trainbatch.Config{MaxBytes: 10}})
	if err != nil {
		t.Fatal(err)
	}
	h := serve(t, map[string]any{"train_batch_pool": pool}).actor(t, "train_batch_pool")
	if call[*rl.TrainBatch](t, h, "get_batch") != nil || !call[bool](t, h, "is_empty") {
		t.Error("an empty pool gives a batch")
	}
	header := rl.TrainHeader{ID: "t1", BatchSize: 2, UpdateFn: "actor_update", Source: "trajectory_pool/0/0"}
	for range 2 { // the answer may have been lost
		if !call[bool](t, h, "put_batch", header, []byte("12345678")) {
			t.Error("put_batch is false")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pool.PutBatch(ctx, rl.TrainHeader{ID: "t3"}, []byte("12345678")); !errors.Is(err, context.Canceled) {
		t.Errorf("a put in a full pool: %v, want that it waits", err)
	}
	if _, err := pool.PutBatch(ctx, rl.TrainHeader{}, nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a batch without an ID: %v, want an error", err)
	}
	waits := actorrpc.Go[bool](t.Context(), h, "put_batch", rl.TrainHeader{ID: "t2"}, []byte("12345678"))
	got := call[*rl.TrainBatch](t, h, "get_batch", "default", "train_worker_0")
	if got == nil || got.ID != "t1" || got.Header.UpdateFn != "actor_update" || string(got.Payload) != "12345678" {
		t.Fatalf("the batch is %+v", got)
	}
	if again := call[*rl.TrainBatch](t, h, "get_batch", "default", "train_worker_0"); again.ID != "t1" {
		t.Errorf("before the acknowledgement the worker gets %+v, want its batch", again)
	}
	if call[*rl.TrainBatch](t, h, "get_batch", "other") != nil {
		t.Error("a batch of another model is given")
	}
	if ok, err := waits.Result(t.Context()); !ok || err != nil { // a consumer has the first, and may need more before it acknowledges it
		t.Errorf("the put that waited: %t, %v", ok, err)
	}
	if !call[bool](t, h, "ack", "t1") {
		t.Error("ack is false")
	}
	if sizes := call[map[string]int](t, h, "sizes"); sizes["default"] != 1 {
		t.Errorf("sizes %v, want the second batch", sizes)
	}
}

func TestTrainBatchesContinueTheirJournal(t *testing.T) {
	dir := t.TempDir()
	open := func() (*roles.TrainBatches, *journal.Journal) {
		j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: dir, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		pool, err := roles.NewTrainBatches(roles.TrainBatchesConfig{Journal: j, Records: records})
		if err != nil {
			t.Fatal(err)
		}
		return pool, j
	}
	pool, j := open()
	for _, id := range []string{"1", "2", "3"} {
		if _, err := pool.PutBatch(t.Context(), rl.TrainHeader{ID: id}, []byte(id)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // 1 is acknowledged, 2 is given
		if b, err := pool.GetBatch(t.Context(), nil, "w"); b == nil || err != nil {
			t.Fatal(b, err)
		}
		if _, err := pool.Ack("1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	pool, j = open()
	defer func() { _ = j.Close() }()
	if _, err := pool.PutBatch(t.Context(), rl.TrainHeader{ID: "1"}, []byte("again")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2", "3", ""} {
		b, err := pool.GetBatch(t.Context(), nil, "w")
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			if want != "" {
				t.Errorf("no batch, want %s", want)
			}
			continue
		}
		if b.ID != want || string(b.Payload) != want {
			t.Errorf("batch %s with %q, want %s", b.ID, b.Payload, want)
		}
		if _, err := pool.Ack(b.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// A batch that waits for room as the run goes back to a checkpoint is dropped: it was made of what is given up.
func TestABatchThatWaitsDuringARewindIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, err := roles.NewTrainBatches(roles.TrainBatchesConfig{Pool: trainbatch.Config{MaxBytes: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.PutBatch(t.Context(), rl.TrainHeader{ID: "1"}, []byte("a")); err != nil {
			t.Fatal(err)
		}
		stored := make(chan bool)
		go func() {
			ok, err := pool.PutBatch(t.Context(), rl.TrainHeader{ID: "2"}, []byte("b"))
			if err != nil {
				t.Error(err)
			}
			stored <- ok
		}()
		synctest.Wait()
		if err := pool.Rewind(1); err != nil {
			t.Fatal(err)
		}
		if <-stored || !pool.IsEmpty() {
			t.Errorf("the batch that waited is stored: %v", pool.Sizes())
		}
		if ok, err := pool.PutBatch(t.Context(), rl.TrainHeader{ID: "2"}, []byte("b")); !ok || err != nil {
			t.Errorf("a batch after the rewind: %t, %v", ok, err)
		}
	})
}
