package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/rl"
)

// Check returns what is wrong between keys. Read has called it.
func (c *Config) Check() []Problem {
	return slices.Concat(
		c.Data.problems("data"), c.validateProblems(), c.batchProblems(), c.optionProblems(), c.countProblems(), c.colocationProblems())
}

func (d Data) problems(section string) []Problem {
	if d.Type == "" || d.Type == "mock" || IsClass(d.Type) || d.DataPath != "" {
		return nil
	}
	return []Problem{{Path: section + ".data_path", Text: fmt.Sprintf("type %q reads files", d.Type), Fix: "Name the file or directory of the items."}}
}

func (c *Config) validateProblems() []Problem {
	problems := c.Validate.Data.problems("validate.data")
	if c.Validates() {
		return problems
	}
	for _, wants := range []struct {
		path string
		does bool
	}{{"validate.validate_before_train", c.Validate.ValidateBeforeTrain}, {"weight.validate_freq", c.Weight.ValidateFreq > 0}} {
		if wants.does {
			problems = append(problems, Problem{Path: wants.path, Text: "there are no data for validation", Fix: "Write validate.data with its type."})
		}
	}
	return problems
}

// batchProblems are sizes with which the pool would never have a batch, or half of a group in it.
func (c *Config) batchProblems() []Problem {
	var problems []Problem
	pool, data := c.TrajectoryPool, c.Data
	if pool.CheckBatchReady == "batch_size" {
		pool.CheckBatchReady = rl.BatchSizeReached
	}
	if IsClass(pool.Type) || IsClass(data.Type) {
		return nil
	}
	if len(pool.KeyList) > 0 && pool.BatchSize%pool.GroupSize != 0 && pool.CheckBatchReady != rl.LoadedBatchFinished {
		problems = append(problems, Problem{
			Path: "trajectory_pool.batch_size", Text: fmt.Sprintf("%d is no multiple of group_size %d: a batch would have a part of a group", pool.BatchSize, pool.GroupSize),
		})
	}
	if slices.Contains(pool.KeyList, "group_id") && pool.GroupSize > data.RepeatItem {
		problems = append(problems, Problem{
			Path: "trajectory_pool.group_size", Text: fmt.Sprintf("a group has %d trajectories, and each item is rolled out only %d times", pool.GroupSize, data.RepeatItem),
			Fix: "Set data.repeat_item to the same.",
		})
	}
	if loaded := data.BatchSize * data.RepeatItem; data.KeepBatchOrder && pool.CheckBatchReady != rl.LoadedBatchFinished && loaded < pool.BatchSize {
		problems = append(problems, Problem{
			Path: "trajectory_pool.batch_size", Text: fmt.Sprintf("a loaded batch gives %d trajectories (data.batch_size times repeat_item), and with keep_batch_order the next one waits: no batch of %d would be ready", loaded, pool.BatchSize),
		})
	}
	return problems
}

// The guide's backend "nextrainer" is a program that fray does not have.
const (
	noNextrainer        = "fray has no client of NexTrainer"
	insteadOfNextrainer = `Write backend "actor" and the trainer as class of the role train_service, or your own client as module:Class of a TrainServiceClient.`
)

func (c *Config) optionProblems() []Problem {
	var problems []Problem
	if c.Out == "" {
		problems = append(problems, Problem{Path: "out", Text: "want a directory, got an empty path"})
	}
	if c.Recovery == rl.RecoverCheckpoint && c.TrainWorker.SaveFreq == 0 && !IsClass(c.TrainWorker.Type) {
		problems = append(problems, Problem{
			Path: "recovery", Text: `"checkpoint" goes back to the run's checkpoints, and train_worker.save_freq is 0, so that there are none`,
			Fix: `Set train_worker.save_freq to 1 or more, or write recovery "journal".`,
		})
	}
	if c.Weight.StalenessThreshold > 0 && c.Weight.SyncMode != rl.BatchAsync {
		problems = append(problems, Problem{
			Path: "weight.staleness_threshold", Text: fmt.Sprintf("sync_mode %q has no threshold", c.Weight.SyncMode), Fix: `Leave it out, or write sync_mode "batch-async".`,
		})
	}
	if pools := c.Count(rl.TrajectoryPool); pools > 1 && c.Weight.SyncMode == rl.Sync && !IsClass(c.Weight.Type) && !IsClass(c.TrajectoryPool.Type) {
		problems = append(problems, Problem{
			Path: "roles.trajectory_pool.count", Text: fmt.Sprintf(`in sync_mode "sync" only the first batch after a sync is new enough, and those of the other %d pools would be rolled out again`, pools-1),
			Fix: fmt.Sprintf(`Write one pool, or sync_mode "batch-async" with a staleness_threshold of %d or more.`, pools-1),
		})
	}
	for path, given := range map[string]string{"service.train_service.url": c.Service.TrainService.URL, "service.train_service.identifier": c.Service.TrainService.Identifier} {
		if given != "" && !IsClass(c.Service.TrainService.Backend) {
			problems = append(problems, Problem{
				Path: path, Text: fmt.Sprintf("backend %q does not read it", c.Service.TrainService.Backend), Fix: "Leave it out, or name a TrainServiceClient of yours as backend, module:Class.",
			})
		}
	}
	if c.Resume.Mode == rl.ResumeFromPath && c.Resume.ResumePath == "" {
		problems = append(problems, Problem{Path: "resume.resume_path", Text: `mode "from_path" needs it`, Fix: "Name the directory global_step_N of a checkpoint."})
	}
	if c.Service.TrainService.Backend == "nextrainer" {
		problems = append(problems, Problem{Path: "service.train_service.backend", Text: noNextrainer, Fix: insteadOfNextrainer})
	}
	for _, tool := range c.RolloutWorker.Tools {
		if !isClassName(tool) {
			problems = append(problems, Problem{Path: "rollout_worker.tools", Text: fmt.Sprintf("want module:name of a function, got %q", tool)})
		}
	}
	for path, class := range map[string]string{"service.train_service.class": c.Service.TrainService.Class, "service.inference_service.class": c.Service.InferenceService.Class} {
		if class != "" && !isClassName(class) {
			problems = append(problems, Problem{Path: path, Text: fmt.Sprintf("want module:Class, got %q", class)})
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems
}

func (c *Config) countProblems() []Problem {
	var problems []Problem
	add := func(role rl.Role, text string, args ...any) {
		problems = append(problems, Problem{Path: fmt.Sprintf("roles.%s.count", role), Text: fmt.Sprintf(text, args...)})
	}
	defaults := Defaults()
	for _, role := range rl.Roles() {
		count := c.Count(role)
		switch role {
		case rl.RolloutWorker, rl.TrainWorker:
			declared, usual := c.RolloutWorker.NumWorkers, defaults.RolloutWorker.NumWorkers
			if role == rl.TrainWorker {
				declared, usual = c.TrainWorker.NumWorkers, defaults.TrainWorker.NumWorkers
			}
			if count < 1 {
				add(role, "want at least 1, got %d", count)
			} else if declared != count && declared != usual {
				add(role, "it is %d, and %s.num_workers is %d", count, role, declared)
			}
		case rl.AlgorithmProcessor, rl.TrajectoryPool:
			if count < 1 {
				add(role, "want at least 1, got %d", count)
			}
		case rl.TrainBatchPool, rl.WeightSyncController, rl.DataLoader, rl.Controller:
			if count != 1 {
				add(role, "a run has one, got %d", count)
			}
		case rl.ValidateDataLoader, rl.Validator:
			want := 0
			if c.Validates() {
				want = 1
			}
			if count != want {
				add(role, "a run has one with validate.data.type and none without: want %d, got %d", want, count)
			}
		case rl.ActivityTracker, rl.ExperimentLogger:
			if count > 1 {
				add(role, "a run has at most one, got %d", count)
			}
		case rl.TrainService, rl.InferenceService:
		}
	}
	return problems
}

// colocationProblems are groups whose roles have different counts: each process of a group has one of every role.
func (c *Config) colocationProblems() []Problem {
	groups := map[string][]rl.Role{}
	for _, role := range rl.Roles() {
		if group := c.Roles[role].ColocationGroup; group != "" {
			groups[group] = append(groups[group], role)
		}
	}
	var problems []Problem
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		first := groups[group][0]
		for _, role := range groups[group][1:] {
			if c.Count(role) != c.Count(first) {
				problems = append(problems, Problem{
					Path: fmt.Sprintf("roles.%s.colocation_group", role),
					Text: fmt.Sprintf("%s has %d, and %s of the same group %q has %d", role, c.Count(role), first, group, c.Count(first)),
					Fix:  "Give them equal counts, or other groups.",
				})
			}
		}
	}
	return problems
}
