package roles

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/checkpoint"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/run"
)

// checkpointPath is where a checkpoint is, by its name or its path.
func (c *Controller) checkpointPath(name string) string {
	if name == "" || filepath.IsAbs(name) || filepath.Base(name) != name {
		return name
	}
	return filepath.Join(c.cfg.Checkpoints, name)
}

// CheckpointSaved is called by a train worker that has written all but run.json of a checkpoint, under a name that does
// not count yet. When it returns run.json is there, and the worker renames the directory.
func (c *Controller) CheckpointSaved(ctx context.Context, step int64, path string) error {
	status, err := peer.Ask[rl.LoaderStatus](ctx, c.cfg.Peers, string(rl.DataLoader), "status")
	if err != nil {
		return err
	}
	loader, err := peer.Ask[[]byte](ctx, c.cfg.Peers, string(rl.DataLoader), "snapshot")
	if err != nil {
		return err
	}
	// After the loader, so that a task which is done meanwhile is in one of them: it comes once from both.
	untrained, err := untrainedOf(ctx, c)
	if err != nil {
		return err
	}
	weights, err := peer.Ask[WeightsStatus](ctx, c.cfg.Peers, string(rl.WeightSyncController), "status")
	if err != nil {
		return err
	}
	c.mu.Lock()
	m := run.Manifest{Step: step, Epoch: c.machine.State().Epoch, Versions: map[string]int64{}, Position: status.Position, Loader: loader, Untrained: untrained, Seeds: c.cfg.Seeds}
	c.mu.Unlock()
	for tag, model := range weights.Models {
		m.Versions[tag] = model.Train
	}
	return checkpoint.Write(path, m)
}

// untrainedOf are the tasks that are done and of which no update is made: a trajectory goes from its pool to the train batch pool,
// which is asked after it, and the train worker waits. A task of which something was trained on is not among them, as it would
// be trained on twice.
func untrainedOf(ctx context.Context, c *Controller) ([]string, error) {
	waiting, trained := map[string]bool{}, map[string]bool{}
	for _, pool := range append(slices.Clone(c.cfg.Cast.Pools), string(rl.TrainBatchPool)) {
		found, err := peer.Ask[rl.Untrained](ctx, c.cfg.Peers, pool, "untrained")
		if err != nil {
			return nil, err
		}
		for _, task := range found.Waiting {
			waiting[task] = true
		}
		for _, task := range found.Trained {
			trained[task] = true
		}
	}
	maps.DeleteFunc(waiting, func(task string, _ bool) bool { return trained[task] })
	return slices.Sorted(maps.Keys(waiting)), nil
}

// checkpointSource is as whom the controller has the loader give the tasks of a checkpoint again.
const checkpointSource = "checkpoint"

// giveUntrained has the tasks come first that a checkpoint's run had rolled out and not trained on.
func giveUntrained(ctx context.Context, c *Controller, tasks []string, epoch int) error {
	if len(tasks) == 0 {
		return nil
	}
	again := make([]rl.TaskAgain, len(tasks))
	for i, task := range tasks {
		again[i] = rl.TaskAgain{Number: int64(i) + 1, TaskID: task, Epoch: epoch}
	}
	lost, err := peer.Ask[[]string](ctx, c.cfg.Peers, string(rl.DataLoader), "roll_out_again", checkpointSource, epoch, again)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		c.cfg.Log.Warn("tasks of the checkpoint that were not trained on are skipped, as the data loader does not know their items any more", "tasks", len(lost), "first", lost[0])
	}
	return nil
}
