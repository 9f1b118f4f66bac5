package roles

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/activity"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/ended"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/posts"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/rl/weights"
)

// add makes the actor of a part.
func (b *builder) add(ctx context.Context, part Part) error {
	name := part.Name(b.cfg)
	a := actor{name: name}
	var err error
	switch part.Role {
	case rl.DataLoader:
		err = b.loader(ctx, &a, b.cfg.Data, rl.RouteTrain)
	case rl.ValidateDataLoader:
		err = b.loader(ctx, &a, b.cfg.Validate.Data, rl.RouteValidate)
	case rl.TrajectoryPool:
		err = b.pool(ctx, &a)
	case rl.TrainBatchPool:
		err = b.trainBatches(ctx, &a)
	case rl.WeightSyncController:
		err = b.weights(ctx, &a)
	case rl.Validator:
		err = b.validator(ctx, &a)
	case rl.ActivityTracker:
		err = b.tracker(ctx, &a)
	case rl.Controller:
		err = b.controller(ctx, &a)
	case rl.RolloutWorker, rl.TrainWorker, rl.AlgorithmProcessor, rl.ExperimentLogger, rl.TrainService, rl.InferenceService:
		err = &PartError{Given: name, Why: "it is a program in Python"}
	}
	if err != nil {
		return err
	}
	b.actors = append(b.actors, a)
	return nil
}

func (b *builder) loader(ctx context.Context, a *actor, data config.Data, route rl.Route) error {
	from, err := sourceOf(data)
	if err != nil {
		return err
	}
	kept, records, err := b.journal(ctx, a.name, false)
	if err != nil {
		return err
	}
	if route == rl.RouteValidate { // each item once, and no weights are synced between batches
		data.RepeatItem, data.Passes, data.KeepBatchOrder = 1, 1, false
	}
	l, err := NewLoader(LoaderConfig{
		Loader: loader.Config{
			BatchSize: data.BatchSize, Repeat: data.RepeatItem, Passes: data.Passes, Shuffle: data.Shuffle, Seed: b.cfg.DataSeed(data),
			KeepBatchOrder: data.KeepBatchOrder, DropLast: data.DropLast, Route: route, LeaseTTL: seconds(data.LeaseTTL), Instance: instance(),
		},
		Source: from, Journal: kept, Records: records, Now: time.Now, Log: b.env.Log,
	})
	if err != nil {
		return err
	}
	a.value, a.options = l, LoaderOptions()
	a.tend = func(ctx context.Context) error { return TendLoader(ctx, l) }
	return nil
}

// sourceOf opens the data. Type torch is a file or a directory, whichever the path is.
func sourceOf(data config.Data) (source.Source, error) {
	directory := data.Type == "directory"
	switch data.Type {
	case "mock":
		return source.Mock(data.NumSamples), nil
	case "torch":
		info, err := os.Stat(data.DataPath)
		if err != nil {
			return nil, fmt.Errorf("data_path: %w", err)
		}
		directory = info.IsDir()
	}
	if directory {
		return source.Directory(data.DataPath)
	}
	return source.JSONL(data.DataPath)
}

func (b *builder) pool(ctx context.Context, a *actor) error {
	kept, records, err := b.journal(ctx, a.name, false)
	if err != nil {
		return err
	}
	c, loader := b.cfg.TrajectoryPool, remoteLoader{b.peers, rl.DataLoader}
	name := a.name
	if kept == nil { // else its next process would name other batches the same
		name += "-" + instance()
	}
	p, err := NewPool(PoolConfig{
		Pool: trajectory.Config{
			Name: name, KeyList: c.KeyList, GroupSize: c.GroupSize, BatchSize: c.BatchSize, Ready: c.CheckBatchReady, Policy: c.IncompleteGroups,
			MaxBytes: c.MaxBytes,
		},
		Loader: loader, Tasks: loader, Weights: remoteNotifier{b.peers}, Journal: kept, Records: records, Now: time.Now, Log: b.env.Log,
	})
	if err != nil {
		return err
	}
	a.value, a.options, a.tend = p, PoolOptions(), p.Tend
	return nil
}

func (b *builder) trainBatches(ctx context.Context, a *actor) error {
	kept, records, err := b.journal(ctx, a.name, false)
	if err != nil {
		return err
	}
	t, err := NewTrainBatches(TrainBatchesConfig{Journal: kept, Records: records, Log: b.env.Log})
	if err != nil {
		return err
	}
	a.value, a.options = t, TrainBatchesOptions()
	return nil
}

func (b *builder) validator(ctx context.Context, a *actor) error {
	kept, records, err := b.journal(ctx, a.name, false)
	if err != nil {
		return err
	}
	v, err := NewValidator(ValidatorConfig{
		Loader: remoteLoader{b.peers, rl.ValidateDataLoader}, Metrics: remoteMetrics{b.peers, b.cfg.Logger.Backend}, Journal: kept, Records: records,
	})
	if err != nil {
		return err
	}
	a.value, a.options = v, ValidatorOptions()
	return nil
}

func (b *builder) weights(ctx context.Context, a *actor) error {
	kept, records, err := b.journal(ctx, a.name, false)
	if err != nil {
		return err
	}
	cast := castOf(b.cfg)
	w, err := NewWeights(WeightsConfig{
		Machine: weights.Config{
			Mode: b.cfg.Weight.SyncMode, StalenessThreshold: int64(b.cfg.Weight.StalenessThreshold), ValidateFreq: int64(b.cfg.Weight.ValidateFreq),
			TrainWorkers: len(cast.TrainWorkers),
		},
		Peers: b.peers, Copier: b.copier(cast), Pools: cast.Pools, Journal: kept, Records: records, Log: b.env.Log,
	})
	if err != nil {
		return err
	}
	a.value, a.options, a.tend = w, WeightsOptions(), w.Tend
	return nil
}

// copier is how weights reach the inference services: actors of the run, or one outside of it.
func (b *builder) copier(cast Cast) Copier {
	service, path := b.cfg.Service.InferenceService, absolute(b.cfg.SyncWeights())
	timeout := seconds(service.SyncTimeout)
	if timeout <= 0 {
		timeout = time.Minute
	}
	if len(cast.Inference) == 0 && service.URL != "" && service.Backend != "mock" {
		return &httpCopier{url: service.URL, path: path, timeout: timeout}
	}
	return &actorCopier{peers: b.peers, services: cast.Inference, path: path, timeout: timeout}
}

// absolute is a path that other processes on this machine read alike.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

func (b *builder) tracker(ctx context.Context, a *actor) error {
	kept, records, err := b.journal(ctx, a.name, true)
	if err != nil {
		return err
	}
	p, err := posts.New(b.cfg, b.peers, time.Now, b.env.Out, b.env.Log)
	if err != nil {
		return err
	}
	b.closed = append(b.closed, p.Close)
	t, err := NewTracker(TrackerConfig{
		Tracker: activity.Config{Instance: instance()}, Peers: b.peers, Post: p.Post, Flush: p.Flush, Back: p.Forget, Journal: kept, Records: records, Now: time.Now, Log: b.env.Log,
	})
	if err != nil {
		return err
	}
	if len(records) > 0 { // else the file is of another run
		if err := p.Recall(t.GetTrainingStep()); err != nil {
			return err
		}
	}
	a.value, a.options = t, TrackerOptions()
	a.tend = func(ctx context.Context) error {
		var calls sync.WaitGroup
		defer calls.Wait()
		calls.Go(func() { p.Tend(ctx) })
		return TendTracker(ctx, t)
	}
	return nil
}

func (b *builder) controller(ctx context.Context, a *actor) error {
	kept, records, err := b.journal(ctx, a.name, true)
	if err != nil {
		return err
	}
	cfg := b.cfg
	health, exceptions := cfg.RuntimeMonitor.HealthCheck, cfg.RuntimeMonitor.ExceptionHandling
	c := ControllerConfig{
		Machine: run.Config{
			TotalSteps: int64(cfg.TrainWorker.TotalTrainSteps), ValidateBeforeTrain: cfg.Validate.ValidateBeforeTrain && cfg.Validates(), Resume: cfg.Resume.Mode,
			ValidateFreq: validateFreq(cfg), ResumePath: cfg.Resume.ResumePath, Policy: exceptions.Policy, Recovery: cfg.Recovery,
			RolloutWorkers: cfg.Count(rl.RolloutWorker),
		},
		Run: ended.RunOf(cfg), End: ended.Path(cfg), Cast: castOf(cfg), Peers: b.peers, Checkpoints: absolute(cfg.Checkpoints()), SyncWeights: absolute(cfg.SyncWeights()),
		Seeds:   map[string]int64{"run": int64(cfg.Seed), "data": int64(cfg.DataSeed(cfg.Data))},
		Journal: kept, Records: records, Now: time.Now, Log: b.env.Log, HealthTimeout: seconds(health.Timeout),
	}
	if health.Enabled {
		c.Health = seconds(health.CheckInterval)
	}
	if exceptions.Enabled {
		c.Errors = seconds(exceptions.CheckInterval)
	}
	lead, err := NewController(c)
	if err != nil {
		return err
	}
	b.leads = lead
	a.value, a.options = lead, ControllerOptions()
	return nil
}

// validateFreq is after how many updates a validation is due; 0: there is none.
func validateFreq(cfg *config.Config) int64 {
	if !cfg.Validates() {
		return 0
	}
	return int64(cfg.Weight.ValidateFreq)
}
