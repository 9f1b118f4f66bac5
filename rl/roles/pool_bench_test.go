package roles_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/trajectory"
)

// benchPool serves a pool with the journal that is asked for: "none", "written" (it outlives the process), "synced" (and a
// crash of the machine).
func benchPool(b *testing.B, kind string, cfg trajectory.Config) *served {
	b.Helper()
	config := roles.PoolConfig{Pool: cfg, Loader: fixed{Drained: true}, Weights: &notified{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if kind != "none" {
		j, records, err := journal.OpenDir(context.Background(), journal.DirConfig{Path: b.TempDir(), NoSync: kind == "written"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = j.Close() })
		config.Journal, config.Records = j, records
	}
	pool, err := roles.NewPool(config)
	if err != nil {
		b.Fatal(err)
	}
	return serve(b, map[string]any{"trajectory_pool": pool})
}

func benchHeader(i int) rl.Header {
	return rl.Header{
		Keys: map[string]any{"group_id": fmt.Sprintf("0/%d", i/8)}, Fields: []string{"finish_reason", "prompt", "response", "score"},
		Scores: map[string]float64{"reward": 0.5}, TaskID: rl.TaskID(0, i/8, i%8), Lease: fmt.Sprintf("train/x/0/%d", i), Tokens: 128,
	}
}

// BenchmarkPutTrajectory is of 4 KiB from 64 callers, each with a connection of its own, while one consumer takes batches of 512.
func BenchmarkPutTrajectory(b *testing.B) {
	for _, kind := range []string{"none", "written", "synced"} {
		b.Run("journal="+kind, func(b *testing.B) {
			s := benchPool(b, kind, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 8, BatchSize: 512, Ready: rl.BatchSizeReached, MaxBytes: 64 << 20})
			const callers = 64
			handles := make([]actorrpc.Handle, callers)
			for i := range handles {
				h, err := dial(b, s.server.Address()).Lookup(b.Context(), "trajectory_pool")
				if err != nil {
					b.Fatal(err)
				}
				handles[i] = h
			}
			payload := make([]byte, 4<<10)
			done := make(chan struct{})
			var consumer sync.WaitGroup
			consumer.Go(func() { consume(b, s, done) })
			b.ResetTimer()
			var workers sync.WaitGroup
			for w := range callers {
				workers.Go(func() {
					for i := w; i < b.N; i += callers {
						if _, err := actorrpc.Call[string](b.Context(), handles[w], "put_trajectory", benchHeader(i), payload); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			workers.Wait()
			b.StopTimer()
			close(done)
			consumer.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
		})
	}
}

func consume(b *testing.B, s *served, done chan struct{}) {
	h := s.actor(b, "trajectory_pool")
	for {
		batch, err := actorrpc.Call[*rl.Batch](b.Context(), h, "get_batch", nil, nil, "processor")
		if err != nil {
			b.Error(err)
			return
		}
		if batch != nil {
			if _, err := actorrpc.Call[bool](b.Context(), h, "ack", batch.ID); err != nil {
				b.Error(err)
				return
			}
			continue
		}
		select {
		case <-done:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// BenchmarkGetBatch is of 512 trajectories of 4 KiB.
func BenchmarkGetBatch(b *testing.B) {
	for _, kind := range []string{"none", "written", "synced"} {
		b.Run("journal="+kind, func(b *testing.B) {
			s := benchPool(b, kind, trajectory.Config{KeyList: []string{"group_id"}, GroupSize: 8, BatchSize: 512, Ready: rl.BatchSizeReached})
			h := s.actor(b, "trajectory_pool")
			payload := make([]byte, 4<<10)
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				futures := make([]*actorrpc.Future[string], 512)
				for i := range futures {
					futures[i] = actorrpc.Go[string](b.Context(), h, "put_trajectory", benchHeader(n*512+i), payload)
				}
				for _, f := range futures {
					if got, err := f.Result(b.Context()); err != nil || got != "success" {
						b.Fatal(got, err)
					}
				}
				b.StartTimer()
				batch := call[*rl.Batch](b, h, "get_batch", nil, nil, "processor")
				b.StopTimer()
				if batch == nil || len(batch.Payloads) != 512 {
					b.Fatalf("batch %v", batch)
				}
				call[bool](b, h, "ack", batch.ID)
				b.StartTimer()
			}
		})
	}
}
