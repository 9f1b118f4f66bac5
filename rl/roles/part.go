package roles

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/config"
)

// Part is one actor of a run: a role and, where it has several, which.
type Part struct {
	Role  rl.Role
	Index int
}

// Name is the actor's name.
func (p Part) Name(cfg *config.Config) string {
	return rl.ActorName(p.Role, p.Index, cfg.Count(p.Role))
}

// PartError is a role that cannot be hosted here.
type PartError struct {
	Given string // "rollout_worker:3"
	Why   string
}

func (e *PartError) Error() string { return fmt.Sprintf("cannot host %q: %s", e.Given, e.Why) }

// ParseParts reads "ROLE" or "ROLE:INDEX" each: without an index it is all actors of the role. The error is a PartError.
func ParseParts(given []string, cfg *config.Config) ([]Part, error) {
	var parts []Part
	seen := map[Part]bool{}
	for _, text := range given {
		found, err := parsePart(text, cfg)
		if err != nil {
			return nil, err
		}
		for _, part := range found {
			if seen[part] {
				return nil, &PartError{Given: text, Why: "it is named twice; leave one out"}
			}
			seen[part] = true
			parts = append(parts, part)
		}
	}
	return parts, nil
}

func parsePart(text string, cfg *config.Config) ([]Part, error) {
	word, index, hasIndex := strings.Cut(text, ":")
	role, err := rl.ParseRole(word)
	if err != nil {
		return nil, &PartError{Given: text, Why: err.Error()}
	}
	if why := python(role, cfg); why != "" {
		return nil, &PartError{Given: text, Why: fmt.Sprintf("%s; start it by: python -m fray.rl %s", why, text)}
	}
	count := cfg.Count(role)
	if role == rl.ActivityTracker {
		count = 1 // also where it shares the controller's process
	}
	if count == 0 {
		return nil, &PartError{Given: text, Why: "the configuration has none of it: validate.data.type is not set"}
	}
	if !hasIndex {
		parts := make([]Part, count)
		for i := range parts {
			parts[i] = Part{Role: role, Index: i}
		}
		return parts, nil
	}
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || n >= count {
		return nil, &PartError{Given: text, Why: fmt.Sprintf("%q is no index of %s: the configuration has %d of it, from 0", index, role, count)}
	}
	return []Part{{Role: role, Index: n}}, nil
}

// python is why a role is hosted by Python, "" if it is not.
func python(role rl.Role, cfg *config.Config) string {
	key, kind := "", ""
	switch role {
	case rl.RolloutWorker, rl.TrainWorker, rl.AlgorithmProcessor, rl.TrainService, rl.InferenceService, rl.ExperimentLogger:
		return "it is a program in Python"
	case rl.TrajectoryPool:
		key, kind = "trajectory_pool.type", cfg.TrajectoryPool.Type
	case rl.TrainBatchPool:
		key, kind = "train_batch_pool.type", cfg.TrainBatchPool.Type
	case rl.WeightSyncController:
		key, kind = "weight.type", cfg.Weight.Type
	case rl.DataLoader:
		key, kind = "data.type", cfg.Data.Type
	case rl.ValidateDataLoader:
		key, kind = "validate.data.type", cfg.Validate.Data.Type
	case rl.Validator:
		key, kind = "validate.eval.type", cfg.Validate.Eval.Type
	case rl.ActivityTracker, rl.Controller:
	}
	if config.IsClass(kind) {
		return fmt.Sprintf("%s is the Python class %s", key, kind)
	}
	return ""
}

// castOf are the actors of a configuration.
func castOf(cfg *config.Config) Cast {
	names := func(role rl.Role) []string {
		count := cfg.Count(role)
		found := make([]string, count)
		for i := range found {
			found[i] = rl.ActorName(role, i, count)
		}
		return found
	}
	return Cast{
		RolloutWorkers: names(rl.RolloutWorker), TrainWorkers: names(rl.TrainWorker), Processors: names(rl.AlgorithmProcessor),
		Pools: names(rl.TrajectoryPool), Inference: names(rl.InferenceService), TrainServices: names(rl.TrainService), Validates: cfg.Validates(),
	}
}
