package config

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/fray-ml/fray/rl"
)

// Backends are logger backends; in the document one word or a list.
type Backends []rl.LoggerBackend

// UnmarshalJSON reads a word as a list of one.
func (b *Backends) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(strings.TrimSpace(string(text)), "[") {
		return json.Unmarshal(text, (*[]rl.LoggerBackend)(b))
	}
	var word rl.LoggerBackend
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	*b = Backends{word}
	return nil
}

// Count is how many actors a role has in processes that are started for it. Without a count of its own a role has one, workers have
// num_workers, validation has none if there are no data for it, and services have none without a class. The controller's process
// hosts the activity tracker if it has none, and logs by itself; wandb has an experiment logger.
func (c *Config) Count(role rl.Role) int {
	if own := c.Roles[role].Count; own != nil {
		return *own
	}
	switch role {
	case rl.RolloutWorker:
		return c.RolloutWorker.NumWorkers
	case rl.TrainWorker:
		return c.TrainWorker.NumWorkers
	case rl.ValidateDataLoader, rl.Validator:
		if !c.Validates() {
			return 0
		}
	case rl.InferenceService:
		if c.Service.InferenceService.Class == "" {
			return 0
		}
	case rl.TrainService:
		if c.Service.TrainService.Class == "" {
			return 0
		}
	case rl.ExperimentLogger:
		if !slices.Contains(c.Logger.Backend, rl.LogWandb) {
			return 0
		}
	case rl.ActivityTracker:
		return 0
	case rl.AlgorithmProcessor, rl.TrajectoryPool, rl.TrainBatchPool, rl.WeightSyncController, rl.DataLoader, rl.Controller:
	}
	return 1
}

// Validates reports whether the run has data for validation.
func (c *Config) Validates() bool { return c.Validate.Data.Type != "" }

// Checkpoints is the directory of the checkpoints.
func (c *Config) Checkpoints() string {
	return orBelow(c.TrainWorker.CheckpointPath, c.Out, "checkpoints")
}

// SyncWeights is the directory through which weights are synced.
func (c *Config) SyncWeights() string {
	return orBelow(c.TrainWorker.SyncWeightPath, c.Out, "sync_weights")
}

// Journals is where the journals are, a directory or gs://BUCKET/PREFIX; "": the run keeps none.
func (c *Config) Journals() string {
	if c.Journal == "" && c.Out == "" {
		return ""
	}
	return orBelow(c.Journal, c.Out, "journal")
}

// Metrics is the directory of loggers that write files.
func (c *Config) Metrics() string { return orBelow(c.Logger.Path, c.Out, "metrics") }

// DataSeed is the seed of a data loader.
func (c *Config) DataSeed(data Data) uint64 {
	if data.Seed != nil {
		return *data.Seed
	}
	return c.Seed
}

func orBelow(given, out, name string) string {
	if given != "" {
		return given
	}
	return strings.TrimSuffix(out, "/") + "/" + path.Clean(name)
}

// IsClass reports whether a type names a Python class: "module:Class".
func IsClass(text string) bool { return strings.Contains(text, ":") }
