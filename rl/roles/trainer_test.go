package roles_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/rl/run"
)

// trainer trains: each update counts.
type trainer struct {
	s    *stage
	save int64 // a checkpoint after so many updates; 0: none
	loop loop
	// beforeCheckpoint is called before the one of a step; nil: nothing is.
	beforeCheckpoint func(step int64)
}

func (w *trainer) InitializeWorkers() {}
func (w *trainer) Run() error         { w.s.model.count("train_worker_0"); return w.loop.start(w.work) }
func (w *trainer) Stop()              { w.loop.stop() }
func (w *trainer) HealthCheck() bool  { return true }

func (w *trainer) LoadCheckpoint(path string) int64 {
	m := w.s.model
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loaded = path
	m.step, _ = run.CheckpointStep(filepath.Base(path))
	for step := range m.made {
		if step > m.step {
			delete(m.made, step)
			delete(m.stale, step)
		}
	}
	return m.step
}

func (w *trainer) SetTrainStep(step int64) {
	w.s.model.mu.Lock()
	defer w.s.model.mu.Unlock()
	w.s.model.step = step
}

func (w *trainer) GetTrainStep() int64 {
	w.s.model.mu.Lock()
	defer w.s.model.mu.Unlock()
	return w.s.model.step
}

func (w *trainer) SaveSyncWeights(path string) {
	w.s.model.mu.Lock()
	defer w.s.model.mu.Unlock()
	w.s.model.saved = append(w.s.model.saved, path)
}

func (w *trainer) work(ctx context.Context) {
	for ctx.Err() == nil && w.GetTrainStep() < int64(w.s.cfg.TrainWorker.TotalTrainSteps) {
		batch, _ := again(ctx, w.s.peers, "train_batch_pool", "get_batch", "default", "train_worker_0").(map[string]any)
		if batch == nil {
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Millisecond):
			}
			continue
		}
		step := w.train(string(batch["payload"].([]byte)))
		whole := context.WithoutCancel(ctx)
		again(whole, w.s.peers, "activity_tracker", "set_training_step", step)
		metrics := map[string]any{"data": map[string]float64{"loss": 1}, "step": step, "id": fmt.Sprint("train_worker_0/", step)}
		again(whole, w.s.peers, "activity_tracker", "experiment_logger_post", "jsonl", metrics)
		if w.save > 0 && step%w.save == 0 {
			w.checkpoint(whole, step)
		}
		again(whole, w.s.peers, "weight_sync_controller", "train_worker_notify_weight_update", "train_worker_0", "default", fmt.Sprint(step))
		again(whole, w.s.peers, "train_batch_pool", "ack", batch["id"])
	}
}

func (w *trainer) train(text string) int64 {
	m := w.s.model
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step++
	for line := range strings.Lines(text) {
		var task string
		var version int64
		if _, err := fmt.Sscan(line, &task, &version); err != nil {
			panic(err)
		}
		m.made[m.step] = append(m.made[m.step], task)
		m.stale[m.step] = append(m.stale[m.step], version)
	}
	return m.step
}

func (w *trainer) checkpoint(ctx context.Context, step int64) {
	if w.beforeCheckpoint != nil {
		w.beforeCheckpoint(step)
	}
	folder := w.s.cfg.Checkpoints()
	hidden := filepath.Join(folder, fmt.Sprintf(".%s.tmp-1", run.CheckpointName(step)))
	if err := os.MkdirAll(hidden, 0o755); err != nil {
		panic(err)
	}
	again(ctx, w.s.peers, "controller", "checkpoint_saved", step, hidden)
	if err := os.Rename(hidden, filepath.Join(folder, run.CheckpointName(step))); err != nil {
		panic(err)
	}
}

// inference is an inference service.
type inference struct{ s *stage }

func (i *inference) UpdateWeights(_ string, version int64) (int64, error) {
	m := i.s.model
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing {
		return 0, errors.New("out of memory")
	}
	m.serving = version
	return version, nil
}

func (i *inference) HealthCheck() bool { return true }
