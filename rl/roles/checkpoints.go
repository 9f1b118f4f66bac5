package roles

import (
	"context"
	"path/filepath"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/checkpoint"
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
	status, err := ask[rl.LoaderStatus](ctx, c.cfg.Peers, string(rl.DataLoader), "status")
	if err != nil {
		return err
	}
	loader, err := ask[[]byte](ctx, c.cfg.Peers, string(rl.DataLoader), "snapshot")
	if err != nil {
		return err
	}
	weights, err := ask[WeightsStatus](ctx, c.cfg.Peers, string(rl.WeightSyncController), "status")
	if err != nil {
		return err
	}
	c.mu.Lock()
	m := run.Manifest{Step: step, Epoch: c.machine.State().Epoch, Versions: map[string]int64{}, Position: status.Position, Loader: loader, Seeds: c.cfg.Seeds}
	c.mu.Unlock()
	for tag, model := range weights.Models {
		m.Versions[tag] = model.Train
	}
	return checkpoint.Write(path, m)
}
