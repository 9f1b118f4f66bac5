package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rl/run"
)

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
