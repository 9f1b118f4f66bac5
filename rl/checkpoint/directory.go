package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rl/run"
)

// ManifestName is the file of a checkpoint that has what belongs to the run. One without is not the run's, and does not count.
const ManifestName = "run.json"

// Error is a checkpoint with which no run can begin.
type Error struct{ Path, Why string }

func (e *Error) Error() string { return fmt.Sprintf("checkpoint %s: %s", e.Path, e.Why) }

// Read is the run.json of a checkpoint, which is of so many updates by its name.
func Read(path string, step int64) (run.Manifest, error) {
	var m run.Manifest
	text, err := os.ReadFile(filepath.Join(path, ManifestName))
	if err != nil {
		return m, fmt.Errorf("read the checkpoint: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, &Error{Path: path, Why: fmt.Sprintf("%s cannot be read: %v; begin at another one", ManifestName, err)}
	}
	if m.Step != step {
		return m, &Error{Path: path, Why: fmt.Sprintf(
			"%s has step %d; want a directory %s with that name, as it was written", ManifestName, m.Step, run.CheckpointName(m.Step))}
	}
	return m, nil
}

// Write adds run.json to a checkpoint that is being written.
func Write(path string, m run.Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = durable.WriteFile(filepath.Join(path, ManifestName), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("checkpoint of step %d: %w", m.Step, err)
	}
	return nil
}

// Names are the names of the checkpoints in a directory; none if there is no directory. One without run.json was
// not written by a run, and does not count.
func Names(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if _, ok := run.CheckpointStep(entry.Name()); !ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(directory, entry.Name(), ManifestName)); err == nil {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// SetAside moves the checkpoints with more updates than that with which a run begins into the directory former_1 beside
// them, or the next number that is free: they are of a former run, and neither a restarted train worker nor a rewind may
// take them for the run's own.
func SetAside(directory string, step int64) error {
	names, err := Names(directory)
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

// IsSame reports whether two paths are the same directory.
func IsSame(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(first, second)
}
