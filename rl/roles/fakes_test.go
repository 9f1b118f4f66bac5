package roles_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/state/store"
)

// stage is a run in this process: roles in Go by roles.Serve, and workers of the test in place of those in Python.
type stage struct {
	t     *testing.T
	cfg   *config.Config
	names *resolver.Local
	peers peer.Peers
	model *model
	log   *slog.Logger
	store func(ctx context.Context, location string) (store.Store, error) // nil: journals are in directories

	client *actorrpc.Client
}

// model is what the workers of the test train: a version, and of which tasks each was made.
type model struct {
	mu      sync.Mutex
	step    int64
	serving int64              // the version that the inference service has
	made    map[int64][]string // step -> tasks of the trajectories that it was trained on
	stale   map[int64][]int64  // step -> versions of these
	failing bool               // update_weights fails
	loaded  string             // the checkpoint
	states  []string           // checkpoints whose states the processor loaded, "" for that of a new one
	saved   []string           // paths of sync weights
	started map[string]int     // runs, by worker
	held    chan struct{}      // tasks of validation wait until it is closed; nil: they do not
}

// uses is how often each task was trained on. m.mu is held.
func (m *model) uses() map[string]int {
	uses := map[string]int{}
	for _, tasks := range m.made {
		for _, task := range tasks {
			uses[task]++
		}
	}
	return uses
}

func newStage(t *testing.T, document string) *stage {
	t.Helper()
	cfg, err := config.Read([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	names, err := resolver.NewLocal(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	t.Cleanup(func() { _ = client.Close() })
	s := &stage{
		t: t, cfg: cfg, names: names, client: client, peers: peer.Of(client), log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		model: &model{made: map[int64][]string{}, stale: map[int64][]int64{}, started: map[string]int{}},
	}
	return s
}

// serve hosts roles until stop, which returns how that ended.
func (s *stage) serve(given ...string) (stop func() error, ended <-chan error) {
	s.t.Helper()
	parts, err := roles.ParseParts(given, s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ready, result := make(chan struct{}), make(chan error, 1)
	env := roles.Environment{Store: s.store, Client: s.client, Out: s.t.Output(), Log: s.log, Ready: func(actors []resolver.Endpoint) {
		for _, actor := range actors {
			s.names.Set(actor.Name, actor)
		}
		close(ready)
	}}
	over := make(chan struct{})
	go func() { defer close(over); result <- roles.Serve(ctx, parts, s.cfg, env) }()
	s.t.Cleanup(func() { cancel(); <-over }) // before its journals are removed
	select {
	case <-ready:
	case err := <-result:
		s.t.Fatalf("%v are not served: %v", given, err)
	}
	return func() error { cancel(); return <-result }, result
}

// worker serves a worker of the test, until the test or stop ends it.
func (s *stage) worker(name string, value any) (stop func()) {
	s.t.Helper()
	server, err := host.New(host.Config{Client: s.client})
	if err != nil {
		s.t.Fatal(err)
	}
	incarnation, err := server.Register(name, value, host.Options{MaxConcurrency: 16})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := server.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.names.Set(name, resolver.Endpoint{Address: server.Address(), Incarnation: incarnation})
	var once sync.Once
	stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = server.Shutdown(ctx)
		})
	}
	s.t.Cleanup(stop)
	return stop
}

// loop is a worker's thread.
type loop struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	ended  chan struct{}
}

func (l *loop) start(work func(ctx context.Context)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		return fmt.Errorf("it runs already")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	l.cancel, l.ended = cancel, ended
	go func() { defer close(ended); work(ctx) }()
	return nil
}

func (l *loop) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
		<-l.ended
		l.cancel = nil
	}
}

// again calls until the actor answers, or ctx ends: what it calls may be repeated.
func again(ctx context.Context, p peer.Peers, actor, method string, args ...any) any {
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		got, err := p.Call(short, actor, method, args...)
		cancel()
		if err == nil {
			return got
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// rollout rolls tasks out.
type rollout struct {
	s          *stage
	name       string
	life       string
	validating sync.Map
	loop       loop
}

func (r *rollout) Run() error        { r.s.model.count(r.name); return r.loop.start(r.work) }
func (r *rollout) Stop()             { r.loop.stop() }
func (r *rollout) HealthCheck() bool { return true }
func (r *rollout) BeginValidate()    { r.validating.Store(0, true) }
func (r *rollout) EndValidate()      { r.validating.Delete(0) }

func (m *model) count(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started[name]++
}

func (r *rollout) work(ctx context.Context) {
	for ctx.Err() == nil {
		loader, pool := "data_loader", "trajectory_pool"
		if _, ok := r.validating.Load(0); ok {
			loader, pool = "validate_dataloader", "validator"
		}
		tasks, _ := again(ctx, r.s.peers, loader, "exchange_leases", r.name, r.life, map[string]any{"want": 1, "wait": 0.05}).([]any)
		if len(tasks) == 0 {
			continue
		}
		task := tasks[0].(map[string]any)
		lease := task["lease"].(map[string]any)
		item := task["item"].(map[string]any)
		again(ctx, r.s.peers, "weight_sync_controller", "wait_rollout_service", "default", 10.0)
		if pool == "validator" {
			r.s.model.wait(ctx)
		}
		r.s.model.mu.Lock()
		version := r.s.model.serving
		r.s.model.mu.Unlock()
		header := map[string]any{
			"keys": map[string]any{"group_id": item["group_id"]}, "task_id": lease["task_id"], "lease": lease["id"], "epoch": lease["epoch"],
			"version": version, "scores": map[string]any{"reward": 0.5}, "fields": []string{"prompt"},
		}
		outcome := again(ctx, r.s.peers, pool, "put_trajectory", header, []byte(fmt.Sprint(lease["task_id"])))
		if outcome == "re-rollout" || outcome == nil {
			again(context.WithoutCancel(ctx), r.s.peers, loader, "put_back", lease["id"])
			continue
		}
		done := []any{map[string]any{"lease": lease["id"], "outcome": "success"}}
		again(context.WithoutCancel(ctx), r.s.peers, loader, "exchange_leases", r.name, r.life, map[string]any{"done": done})
	}
}

// wait waits while tasks of validation are held.
func (m *model) wait(ctx context.Context) {
	m.mu.Lock()
	held := m.held
	m.mu.Unlock()
	if held == nil {
		return
	}
	select {
	case <-held:
	case <-ctx.Done():
	}
}

// processor makes a batch for training of each batch of trajectories.
type processor struct {
	s    *stage
	loop loop
	most int // batches that it acknowledges; 0: all
	made int
}

func (p *processor) Run() error        { return p.loop.start(p.work) }
func (p *processor) Stop()             { p.loop.stop() }
func (p *processor) HealthCheck() bool { return true }

func (p *processor) LoadCheckpoint(path string) {
	p.s.model.mu.Lock()
	defer p.s.model.mu.Unlock()
	p.s.model.states = append(p.s.model.states, path)
}

func (p *processor) work(ctx context.Context) {
	for ctx.Err() == nil {
		batch, _ := again(ctx, p.s.peers, "trajectory_pool", "get_batch", nil, nil, "algorithm_processor_0", 1.0).(map[string]any)
		if batch == nil {
			continue
		}
		text, tasks := "", []any{}
		for _, header := range batch["headers"].([]any) {
			h := header.(map[string]any)
			version, _ := h["version"].(int64)
			text += fmt.Sprintf("%v %d\n", h["task_id"], version)
			tasks = append(tasks, h["task_id"])
		}
		header := map[string]any{"id": "t-" + batch["id"].(string), "model_tag": "default", "batch_size": len(batch["payloads"].([]any)), "source": batch["id"], "tasks": tasks}
		again(ctx, p.s.peers, "train_batch_pool", "put_batch", header, []byte(text))
		if p.made++; p.made == p.most+1 && p.most > 0 {
			<-ctx.Done() // this one is in both pools
			return
		}
		again(ctx, p.s.peers, "trajectory_pool", "ack", batch["id"])
	}
}
