package roles_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/trajectory"
)

// ids are the tasks of an exchange, and its leases.
func ids(tasks []rl.Task) (names, leases []string) {
	for _, task := range tasks {
		names, leases = append(names, task.Lease.TaskID), append(leases, task.Lease.ID)
	}
	return names, leases
}

// N40: what an exchange ends and leases is one step. An answer that was lost comes again, and the journal has all of it.
func TestN40_AnExchangeIsOneStep(t *testing.T) {
	dir := t.TempDir()
	open := func() (*roles.Loader, *journal.Journal) {
		j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: dir, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		l, err := roles.NewLoader(roles.LoaderConfig{Source: source.Mock(5), Journal: j, Records: records, Now: now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return l, j
	}
	l, j := open()
	exchange := func(incarnation string, x roles.LeaseExchange) ([]string, []string) {
		t.Helper()
		tasks, err := l.ExchangeLeases(t.Context(), "w", incarnation, x)
		if err != nil {
			t.Fatal(err)
		}
		return ids(tasks)
	}
	first, leases := exchange("1", roles.LeaseExchange{Want: 3})
	again, same := exchange("1", roles.LeaseExchange{Want: 3}) // the answer was lost
	if !slices.Equal(first, again) || !slices.Equal(leases, same) || len(first) != 3 {
		t.Fatalf("got %q, and asked again %q", first, again)
	}
	done := []roles.DoneLease{{Lease: leases[0], Outcome: "success"}, {Lease: leases[1], Outcome: "none"}}
	next, _ := exchange("1", roles.LeaseExchange{Done: done, Held: leases[2:], Want: 1})
	if status := l.Status(); status.Leased != 2 || !slices.Equal(next, []string{"0/3/0"}) {
		t.Fatalf("got %q with %+v", next, status)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	l, j = open()
	defer func() { _ = j.Close() }()
	if known, _ := exchange("1", roles.LeaseExchange{Want: 9}); !slices.Equal(known, []string{"0/2/0", "0/3/0", "0/4/0"}) {
		t.Errorf("after a restart the worker has %q, want both leases that stand, and the last task", known)
	}
	if other, _ := exchange("2", roles.LeaseExchange{Want: 9}); !slices.Equal(other, []string{"0/2/0", "0/3/0", "0/4/0"}) {
		t.Errorf("the worker's next life gets %q, want the tasks of the one before", other)
	}
	for _, wrong := range []roles.LeaseExchange{{Want: -1}, {Want: 1 << 20}, {Done: []roles.DoneLease{{Lease: "x", Outcome: "odd"}}}} {
		if _, err := l.ExchangeLeases(t.Context(), "w", "2", wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// N12: a worker that waits for a task gets it as the batch is unlocked. One that has gone, or was replaced, gets none.
func TestN12_AWaitForATaskEndsWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(t, loader.Config{BatchSize: 1, KeepBatchOrder: true, LeaseTTL: time.Hour}, source.Mock(3))
		_, leases := ids(exchanged(t, l, "w", "1", roles.LeaseExchange{Want: 1}))
		x := roles.LeaseExchange{Done: []roles.DoneLease{{Lease: leases[0], Outcome: "success"}}, Want: 1, Wait: 60}
		waits := make(chan []rl.Task, 3)
		go func() { waits <- exchanged(t, l, "w", "1", x) }()
		synctest.Wait()
		if status := l.WaitQuiet(t.Context(), 60); !status.Quiet() {
			t.Fatalf("%+v while the worker waits: its task has ended", status)
		}
		if _, err := l.UnlockForNextBatch(); err != nil {
			t.Fatal(err)
		}
		if tasks := <-waits; len(tasks) != 1 || tasks[0].Lease.TaskID != "0/1/0" {
			t.Fatalf("got %+v", tasks)
		}
		began := time.Now()
		if status := l.WaitQuiet(t.Context(), 7); status.Quiet() || time.Since(began) != 7*time.Second {
			t.Errorf("%+v after %s, want a task that is rolled out, after 7 s", status, time.Since(began))
		}
		if tasks := exchanged(t, l, "v", "1", roles.LeaseExchange{Want: 1, Wait: 3}); len(tasks) != 0 || time.Since(began) != 10*time.Second {
			t.Errorf("got %+v after %s, want none after 10 s", tasks, time.Since(began))
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			tasks, err := l.ExchangeLeases(ctx, "gone", "1", roles.LeaseExchange{Want: 1, Wait: 60})
			if err != nil {
				t.Error(err)
			}
			waits <- tasks
		}()
		synctest.Wait()
		leave()
		if tasks := <-waits; len(tasks) != 0 {
			t.Errorf("a caller that has gone gets %+v", tasks)
		}
	})
}

func exchanged(t *testing.T, l *roles.Loader, worker, incarnation string, x roles.LeaseExchange) []rl.Task {
	t.Helper()
	tasks, err := l.ExchangeLeases(t.Context(), worker, incarnation, x)
	if err != nil {
		t.Error(err)
	}
	return tasks
}

// N43: a call that still waits for a worker that was replaced does not end the leases of the next one.
func TestN43_AWaitOfAReplacedWorkerChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(t, loader.Config{BatchSize: 1, KeepBatchOrder: true, LeaseTTL: time.Hour}, source.Mock(3))
		if _, leases := ids(exchanged(t, l, "w", "1", roles.LeaseExchange{Want: 1})); len(leases) == 1 {
			exchanged(t, l, "w", "1", roles.LeaseExchange{Done: []roles.DoneLease{{Lease: leases[0], Outcome: "success"}}})
		}
		old := make(chan []rl.Task, 1)
		go func() { old <- exchanged(t, l, "w", "1", roles.LeaseExchange{Want: 1, Wait: 60}) }()
		synctest.Wait()
		if err := l.AddItem(rl.Item{"prompt": "next"}); err != nil { // wakes the old call, which may be first
			t.Fatal(err)
		}
		held := exchanged(t, l, "w", "2", roles.LeaseExchange{Want: 1})
		if _, err := l.UnlockForNextBatch(); err != nil {
			t.Fatal(err)
		}
		<-old
		if got := exchanged(t, l, "w", "2", roles.LeaseExchange{Want: 1}); len(held) == 0 || len(got) == 0 || got[0].Lease.ID != held[0].Lease.ID {
			t.Errorf("the next life had %+v, and has %+v", held, got)
		}
	})
}

// N21, N24 and N25 hold for trajectories that come together: each has its outcome, and a repetition changes nothing.
func TestN20_TrajectoriesThatComeTogether(t *testing.T) {
	p := newPool(t, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 2, BatchSize: 2, Ready: rl.BatchSizeReached}, fixed{Leased: 1}, &notified{})
	h := serve(t, map[string]any{"trajectory_pool": p}).actor(t, "trajectory_pool")
	header := func(task string) rl.Header { return rl.Header{TaskID: task, Keys: map[string]any{"group_id": "g"}} }
	headers := []rl.Header{header("0/0/0"), {TaskID: "0/0/2"}, header("0/0/1")}
	payloads := [][]byte{[]byte("a"), []byte("no key"), []byte("b")}
	want := []roles.PutAnswer{{Outcome: rl.Success}, {Outcome: rl.Fail}, {Outcome: rl.Success}}
	for range 2 {
		if got := call[[]roles.PutAnswer](t, h, "put_trajectories", headers, payloads); !slices.Equal(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
	batch := call[*rl.Batch](t, h, "get_batch", nil, nil, "w")
	if batch == nil || len(batch.Payloads) != 2 || string(batch.Payloads[0])+string(batch.Payloads[1]) != "ab" {
		t.Errorf("the batch is %+v", batch)
	}
	if _, err := p.PutTrajectories(t.Context(), headers, payloads[:1]); err == nil {
		t.Error("headers without payloads are accepted")
	}
}

// A pool that is asked to wait answers as soon as it has a batch: by its size, or since the loader has become quiet.
func TestN28_AWaitForABatchEndsWithTheLastRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoader(t, loader.Config{BatchSize: 2, KeepBatchOrder: true, LeaseTTL: time.Hour}, source.Mock(2))
		p := newPool(t, trajectory.Config{}, direct{l}, &notified{})
		waits := make(chan *rl.Batch, 1)
		began := time.Now()
		go func() {
			batch, err := p.GetBatch(t.Context(), nil, nil, "w", 60.0)
			if err != nil {
				t.Error(err)
			}
			waits <- batch
		}()
		tasks := exchanged(t, l, "w", "1", roles.LeaseExchange{Want: 2})
		for _, task := range tasks {
			synctest.Wait()
			if _, err := p.PutTrajectory(t.Context(), rl.Header{TaskID: task.Lease.TaskID}, []byte("x")); err != nil {
				t.Fatal(err)
			}
			exchanged(t, l, "w", "1", roles.LeaseExchange{Done: []roles.DoneLease{{Lease: task.Lease.ID, Outcome: "success"}}})
		}
		if batch := <-waits; batch == nil || len(batch.Payloads) != 2 || time.Since(began) != 0 {
			t.Errorf("got %+v after %s, want both trajectories at once", batch, time.Since(began))
		}
		if batch, err := p.GetBatch(t.Context(), nil, nil, "other", 4.0); batch != nil || err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("got %+v, %v after %s, want none after 4 s", batch, err, time.Since(began))
		}
	})
}

// A train batch pool that is asked to wait answers as soon as a batch is put.
func TestN51_AWaitForATrainBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, err := roles.NewTrainBatches(roles.TrainBatchesConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if batch, err := pool.GetBatch(t.Context(), nil, "w", 3.0); batch != nil || err != nil {
			t.Fatal(batch, err)
		}
		waits := make(chan *rl.TrainBatch, 1)
		go func() {
			batch, err := pool.GetBatch(t.Context(), nil, "w", 60.0)
			if err != nil {
				t.Error(err)
			}
			waits <- batch
		}()
		synctest.Wait()
		if _, err := pool.PutBatch(t.Context(), rl.TrainHeader{ID: "1"}, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if batch := <-waits; batch == nil || batch.ID != "1" {
			t.Errorf("got %+v", batch)
		}
	})
}
