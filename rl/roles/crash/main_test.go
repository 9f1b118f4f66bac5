// Package crash kills processes that host a run's stateful roles, between any two steps of what they do, and checks
// that nothing acknowledged is lost or done twice. It has tests only. Start with TestDeathBetweenAnyTwoSteps.
package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/trajectory"
)

// childVariable has the child's orders; without it the process is the test.
const childVariable = "FRAY_TEST_RL_CRASH"

// orders are what a child does.
type orders struct {
	Dir   string // of its journals
	DieAt int64  // the step before which it dies; 0: never
	Floor int64  // the version of weights before which weight sync takes no trajectory
}

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := child(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killer counts steps, and kills the process at one of them.
type killer struct {
	steps atomic.Int64
	dieAt int64
}

func (m *killer) step() {
	if m.steps.Add(1) == m.dieAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

// dying is a journal with a step before and after each call.
type dying struct {
	*journal.Journal
	killer *killer
}

func (d dying) Append(record []byte) journal.Position {
	d.killer.step()
	at := d.Journal.Append(record)
	d.killer.step()
	return at
}

func (d dying) Rewrite(records [][]byte) journal.Position {
	d.killer.step()
	at := d.Journal.Rewrite(records)
	d.killer.step()
	return at
}

func (d dying) Wait(at journal.Position) error {
	d.killer.step()
	err := d.Journal.Wait(at)
	d.killer.step()
	return err
}

// notes keeps, in a file, which batches were counted.
type notes struct {
	path   string
	floor  int64
	killer *killer
}

func (n notes) BatchReady(_ context.Context, _ rl.ModelTag, id string, oldest *int64) (rl.BatchVerdict, error) {
	n.killer.step()
	verdict := rl.BatchVerdict{Counted: oldest == nil || *oldest >= n.floor, Floor: n.floor}
	if !verdict.Counted {
		return verdict, nil
	}
	f, err := os.OpenFile(n.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return verdict, err
	}
	if _, err := fmt.Fprintln(f, id); err != nil {
		return verdict, err
	}
	n.killer.step()
	return verdict, f.Close()
}

// direct calls the loader in this process.
type direct struct {
	loader *roles.Loader
	killer *killer
}

func (d direct) Status(context.Context) (rl.LoaderStatus, error) { return d.loader.Status(), nil }

func (d direct) WaitQuiet(ctx context.Context, seconds float64) (rl.LoaderStatus, error) {
	return d.loader.WaitQuiet(ctx, seconds), nil
}

func (d direct) RollOutAgain(_ context.Context, pool string, epoch int, tasks []rl.TaskAgain) ([]string, error) {
	lost, err := d.loader.RollOutAgain(pool, epoch, tasks)
	d.killer.step() // the answer is lost
	return lost, err
}

// child hosts a loader and both pools, prints its address, and serves until its standard input ends.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	actors, err := o.actors(ctx)
	if err != nil {
		return err
	}
	server, err := host.New(host.Config{})
	if err != nil {
		return err
	}
	for name, actor := range actors {
		if _, err := server.Register(name, actor, host.Options{MaxConcurrency: 64}); err != nil {
			return err
		}
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	fmt.Println(server.Address())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (o orders) actors(ctx context.Context) (map[string]any, error) {
	m := &killer{dieAt: o.DieAt}
	open := func(name string) (record.Journal, [][]byte, error) {
		j, records, err := journal.OpenDir(ctx, journal.DirConfig{Path: filepath.Join(o.Dir, name), NoSync: true})
		return dying{j, m}, records, err
	}
	j, records, err := open("data_loader")
	if err != nil {
		return nil, err
	}
	discard := slog.New(slog.DiscardHandler)
	from, err := roles.NewLoader(roles.LoaderConfig{
		Loader: loader.Config{BatchSize: itemsOfBatch, Repeat: groupSize, KeepBatchOrder: true}, Source: source.Mock(items), Journal: j, Records: records,
		Now: time.Now, Log: discard,
	})
	if err != nil {
		return nil, err
	}
	if j, records, err = open("trajectory_pool"); err != nil {
		return nil, err
	}
	pool, err := roles.NewPool(roles.PoolConfig{
		Pool:   trajectory.Config{Name: "trajectory_pool", KeyList: []string{"group_id"}, GroupSize: groupSize},
		Loader: direct{from, m}, Tasks: direct{from, m}, Weights: notes{filepath.Join(o.Dir, "notified"), o.Floor, m}, Journal: j, Records: records,
		Now: time.Now, Log: discard,
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = pool.Tend(ctx) }()
	if j, records, err = open("train_batch_pool"); err != nil {
		return nil, err
	}
	train, err := roles.NewTrainBatches(roles.TrainBatchesConfig{Journal: j, Records: records})
	if err != nil {
		return nil, err
	}
	return map[string]any{"data_loader": from, "trajectory_pool": pool, "train_batch_pool": train}, nil
}
