package config

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/rl"
)

// problems are those of a document, each as a line.
func problems(t *testing.T, document string) []string {
	t.Helper()
	_, err := Read([]byte(document))
	if err == nil {
		return nil
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %T %v, want an InvalidError", err, err)
	}
	lines := make([]string, len(invalid.Problems))
	for i, problem := range invalid.Problems {
		lines[i] = problem.String()
	}
	return lines
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		name, document string
		want           []string
	}{
		{"nothing", `{}`, nil},
		{"null is the default", `{"data": {"batch_size": null, "type": "mock"}, "seed": null}`, nil},
		{"no JSON", "{\n\"seed\": 1,\n}", []string{`line 3 is no JSON: invalid character '}' looking for beginning of object key string`}},
		{"a list", `[]`, []string{"want a JSON object, got array"}},
		{"null", `null`, []string{"want a JSON object, got null"}},
		{"two objects", `{} {}`, []string{"the JSON object ends, and more text follows"}},
		{"a key that is near", `{"data": {"batch_sise": 3}, "wieght": {}}`, []string{
			`data.batch_sise: there is no key "batch_sise". Did you mean "batch_size"?`, `wieght: there is no key "wieght". Did you mean "weight"?`,
		}},
		{"a key that is not near", `{"resume": {"xyz": 3}}`, []string{`resume.xyz: there is no key "xyz". There are mode, resume_path.`}},
		{"a section that is none", `{"data": 3}`, []string{"data: want an object, got 3"}},
		{"types", `{"seed": "x", "project_name": 1, "data": {"shuffle": 1, "batch_size": 0, "lease_ttl": 0}, "trajectory_pool": {"key_list": ["a", 1], "batch_size": 1.5}, "service": {"train_service": {"config": []}}}`, []string{
			"data.batch_size: want a whole number from 1, got 0", "data.lease_ttl: want a number of seconds above 0, got 0", "data.shuffle: want true or false, got 1",
			`project_name: want a string, got 1`, `seed: want a whole number from 0, got "x"`, "service.train_service.config: want an object, got []",
			"trajectory_pool.batch_size: want a whole number from 1, got 1.5", `trajectory_pool.key_list: want a list of strings, got ["a",1]`,
		}},
		{"words", `{"weight": {"sync_mode": "sinc"}, "logger": {"backend": ["console", "mlflow"]}, "algorithm": {"type": "ppo"}}`, []string{
			`algorithm.type: want mock, grpo, or module:Class, got "ppo"`, `logger.backend: want one or a list of console, jsonl, tensorboard, wandb, got "mlflow"`,
			`weight.sync_mode: want sync, fully-async, batch-async, got "sinc". Did you mean "sync"?`,
		}},
		{"a class has keys of its own", `{"data": {"type": "my.data:Loader", "folder": 7}, "service": {"train_service": {"class": "policy:Trainer", "rate": 0.1}}}`, nil},
		{"a built-in type has none", `{"data": {"type": "mock", "folder": 7}}`, []string{
			`data.folder: there is no key "folder". There are batch_size, data_path, drop_last, keep_batch_order, lease_ttl, num_samples, passes, repeat_item, seed, shuffle, type.`,
		}},
		{"a path that is missing", `{"data": {"type": "jsonl"}, "validate": {"data": {"type": "torch"}}, "resume": {"mode": "from_path"}}`, []string{
			`data.data_path: type "jsonl" reads files. Name the file or directory of the items.`,
			`validate.data.data_path: type "torch" reads files. Name the file or directory of the items.`,
			`resume.resume_path: mode "from_path" needs it. Name the directory global_step_N of a checkpoint.`,
		}},
		{"object stores", `{"out": "gs://bucket/run", "data": {"type": "my:Loader", "data_path": "gs://bucket/data"}, "validate": {"data": {"type": "jsonl", "data_path": "gs://bucket/v"}}}`, []string{
			`out: want a path that every host of the run sees, got "gs://bucket/run", and object stores are not read`,
			`validate.data.data_path: want a path that every host of the run sees, got "gs://bucket/v", and object stores are not read`,
		}},
		{"validation without data", `{"validate": {"validate_before_train": true}, "weight": {"validate_freq": 5}}`, []string{
			"validate.validate_before_train: there are no data for validation. Write validate.data with its type.",
			"weight.validate_freq: there are no data for validation. Write validate.data with its type.",
		}},
		{"a threshold without its mode", `{"weight": {"sync_mode": "sync", "staleness_threshold": 2}}`, []string{
			`weight.staleness_threshold: sync_mode "sync" has no threshold. Leave it out, or write sync_mode "batch-async".`,
		}},
		{"sizes", `{"data": {"batch_size": 2, "repeat_item": 4, "keep_batch_order": true}, "trajectory_pool": {"key_list": ["group_id"], "group_size": 5, "batch_size": 12}}`, []string{
			"trajectory_pool.batch_size: 12 is no multiple of group_size 5: a batch would have a part of a group",
			"trajectory_pool.group_size: a group has 5 trajectories, and each item is rolled out only 4 times. Set data.repeat_item to the same.",
			"trajectory_pool.batch_size: a loaded batch gives 8 trajectories (data.batch_size times repeat_item), and with keep_batch_order the next one waits: no batch of 12 would be ready",
		}},
		{"roles", `{"roles": {"roller": {}, "controller": {"count": -1}}}`, []string{
			"roles.controller.count: want a whole number from 0, got -1",
			`roles.roller: there is no key "roller". There are activity_tracker, algorithm_processor, controller, data_loader, experiment_logger, inference_service, rollout_worker, train_batch_pool, train_service, train_worker, trajectory_pool, validate_dataloader, validator, weight_sync_controller.`,
		}},
		{"counts", `{"rollout_worker": {"num_workers": 3}, "roles": {"rollout_worker": {"count": 4}, "controller": {"count": 2}, "validator": {"count": 2}, "trajectory_pool": {"count": 0}}}`, []string{
			"roles.rollout_worker.count: it is 4, and rollout_worker.num_workers is 3", "roles.trajectory_pool.count: want at least 1, got 0",
			"roles.validator.count: a run has one with validate.data.type and none without: want 0, got 2", "roles.controller.count: a run has one, got 2",
		}},
		{"NexTrainer", `{"service": {"train_service": {"backend": "nextrainer"}}}`, []string{
			`service.train_service.backend: fray has no client of NexTrainer. Write backend "actor" and the trainer as class of the role train_service, or your own client as module:Class of a TrainServiceClient.`,
		}},
		{"validation without its roles", `{"validate": {"data": {"type": "mock"}}, "roles": {"validate_dataloader": {"count": 0}}}`, []string{
			"roles.validate_dataloader.count: a run has one with validate.data.type and none without: want 1, got 0",
		}},
		{"no checkpoints", `{"recovery": "checkpoint", "out": ""}`, []string{
			"out: want a directory, got an empty path",
			`recovery: "checkpoint" goes back to the run's checkpoints, and train_worker.save_freq is 0, so that there are none. Set train_worker.save_freq to 1 or more, or write recovery "journal".`,
		}},
		{"checkpoints", `{"recovery": "checkpoint", "train_worker": {"save_freq": 1}}`, nil},
		{"checkpoints of a class", `{"recovery": "checkpoint", "train_worker": {"type": "my:Worker"}}`, nil},
		{"tools", `{"rollout_worker": {"tools": ["calculator"]}}`, []string{`rollout_worker.tools: want module:name of a function, got "calculator"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(t, test.document)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestN84_CountsOfOneColocationGroupAreEqual(t *testing.T) {
	unequal := `{"rollout_worker": {"num_workers": 2}, "roles": {"rollout_worker": {"colocation_group": "a"}, "algorithm_processor": {"colocation_group": "a", "count": %}}}`
	want := []string{`roles.algorithm_processor.colocation_group: algorithm_processor has 3, and rollout_worker of the same group "a" has 2. Give them equal counts, or other groups.`}
	if diff := cmp.Diff(want, problems(t, strings.ReplaceAll(unequal, "%", "3"))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got := problems(t, strings.ReplaceAll(unequal, "%", "2")); got != nil {
		t.Errorf("equal counts have problems: %q", got)
	}
}

func TestN29_AnUnknownReadinessFunctionIsAProblem(t *testing.T) {
	for _, name := range []string{"batch_size", "batch_size_reached", "loaded_batch_finished", "batch_size_reached_and_loaded_batch_finished"} {
		if got := problems(t, `{"trajectory_pool": {"check_batch_ready_function": "`+name+`"}}`); got != nil {
			t.Errorf("%s: got problems %q", name, got)
		}
	}
	got := problems(t, `{"trajectory_pool": {"check_batch_ready_function": "batch_size_reach"}}`)
	if len(got) != 1 || !strings.Contains(got[0], `got "batch_size_reach". Did you mean "batch_size_reached"?`) {
		t.Errorf("got %q, want one problem that names the function and the nearest", got)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Read([]byte(`{"out": "/data/run", "seed": 7, "rollout_worker": {"num_workers": 4}, "logger": {"backend": "jsonl"}, "validate": {"data": {"type": "mock", "seed": 9}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	seed := uint64(9)
	want.Out, want.Seed, want.RolloutWorker.NumWorkers, want.Logger.Backend = "/data/run", 7, 4, Backends{rl.LogJSONL}
	want.Validate.Data.Type, want.Validate.Data.Seed = "mock", &seed
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	for got, want := range map[string]string{c.Checkpoints(): "/data/run/checkpoints", c.SyncWeights(): "/data/run/sync_weights", c.Metrics(): "/data/run/metrics"} {
		if got != want {
			t.Errorf("got directory %s, want %s", got, want)
		}
	}
	if data, validation := c.DataSeed(c.Data), c.DataSeed(c.Validate.Data); data != 7 || validation != 9 {
		t.Errorf("got seeds %d and %d, want 7 and 9", data, validation)
	}
	counts := map[rl.Role]int{}
	for _, role := range rl.Roles() {
		counts[role] = c.Count(role)
	}
	wantCounts := map[rl.Role]int{
		rl.RolloutWorker: 4, rl.TrainWorker: 1, rl.AlgorithmProcessor: 1, rl.TrajectoryPool: 1, rl.TrainBatchPool: 1, rl.WeightSyncController: 1, rl.DataLoader: 1,
		rl.ValidateDataLoader: 1, rl.Validator: 1, rl.ActivityTracker: 0, rl.Controller: 1, rl.ExperimentLogger: 0, rl.TrainService: 0, rl.InferenceService: 0,
	}
	if diff := cmp.Diff(wantCounts, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestKeysAreTheFields compares the keys with the fields of Config, by the JSON of each.
func TestKeysAreTheFields(t *testing.T) {
	var fields []string
	var walk func(string, reflect.Type)
	walk = func(at string, typ reflect.Type) {
		for field := range typ.Fields() {
			path := strings.TrimPrefix(at+"."+field.Tag.Get("json"), ".")
			switch {
			case path == "roles":
				walk("roles.*", field.Type.Elem())
			case field.Type.Kind() == reflect.Struct:
				walk(path, field.Type)
			default:
				fields = append(fields, path)
			}
		}
	}
	walk("", reflect.TypeFor[Config]())
	var paths []string
	for _, key := range Keys() {
		paths = append(paths, key.Path)
	}
	slices.Sort(fields)
	slices.Sort(paths)
	if diff := cmp.Diff(fields, paths); diff != "" {
		t.Errorf("keys (-fields +keys):\n%s", diff)
	}
}

// FuzzRead holds that every document gives a configuration or problems, and that a configuration is read again as it was written.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"data": {"type": "jsonl", "data_path": "x"}, "roles": {"controller": {"count": 1}}}`))
	f.Add([]byte(`{"logger": {"backend": "wandb"}, "seed": 18446744073709551615}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		c, err := Read(document)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("got %v, want problems", err)
			}
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again := &Config{}
		if err := json.Unmarshal(text, again); err != nil {
			t.Fatalf("read %s again: %v", text, err)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(c.Roles)), slices.Sorted(maps.Keys(again.Roles))) {
			t.Errorf("roles differ after writing: %s", text)
		}
	})
}
