package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/run"
)

// manifestName is the file of a checkpoint that has what belongs to the run. One without is not the run's, and does not count.
const manifestName = "run.json"

// CheckpointError is a checkpoint with which no run can begin.
type CheckpointError struct{ Path, Why string }

func (e *CheckpointError) Error() string { return fmt.Sprintf("checkpoint %s: %s", e.Path, e.Why) }

// checkpointPath is where a checkpoint is, by its name or its path.
func (c *Controller) checkpointPath(name string) string {
	if name == "" || filepath.IsAbs(name) || filepath.Base(name) != name {
		return name
	}
	return filepath.Join(c.cfg.Checkpoints, name)
}

// manifestOf reads the run.json of a checkpoint, which is of so many updates by its name.
func manifestOf(path string, step int64) (run.Manifest, error) {
	var m run.Manifest
	text, err := os.ReadFile(filepath.Join(path, manifestName))
	if err != nil {
		return m, fmt.Errorf("read the checkpoint: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, &CheckpointError{Path: path, Why: fmt.Sprintf("%s cannot be read: %v; begin at another one", manifestName, err)}
	}
	if m.Step != step {
		return m, &CheckpointError{Path: path, Why: fmt.Sprintf(
			"%s has step %d; want a directory %s with that name, as it was written", manifestName, m.Step, run.CheckpointName(m.Step))}
	}
	return m, nil
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
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	if err := durable.WriteFile(filepath.Join(path, manifestName), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	return nil
}

// checkpointsIn are the names of the checkpoints in a directory; none if there is no directory. One without run.json was
// not written by a run, and does not count.
func checkpointsIn(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if _, ok := run.CheckpointStep(entry.Name()); !ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(directory, entry.Name(), manifestName)); err == nil {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// setAside moves the checkpoints with more updates than that with which a run begins into the directory former_1 beside
// them, or the next number that is free: they are of a former run, and neither a restarted train worker nor a rewind may
// take them for the run's own.
func setAside(directory string, step int64) error {
	names, err := checkpointsIn(directory)
	if err != nil {
		return err
	}
	former := ""
	for _, name := range names {
		if n, _ := run.CheckpointStep(name); n <= step {
			continue
		}
		if former == "" {
			if former, err = makeFormer(directory); err != nil {
				return err
			}
		}
		if err := os.Rename(filepath.Join(directory, name), filepath.Join(former, name)); err != nil {
			return fmt.Errorf("set the checkpoint of a former run aside: %w", err)
		}
	}
	if former == "" {
		return nil
	}
	return errors.Join(durable.SyncDir(former), durable.SyncDir(directory))
}

func makeFormer(directory string) (string, error) {
	for i := 1; ; i++ {
		path := filepath.Join(directory, fmt.Sprintf("former_%d", i))
		err := os.Mkdir(path, 0o755)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("set the checkpoints of a former run aside: %w", err)
		}
	}
}

func isSameFile(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(first, second)
}
