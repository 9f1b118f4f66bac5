package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// evaluated is a configuration that calls the module with these lines, which begin at line 4.
func evaluated(t *testing.T, lines string) (*schema.Config, hcl.Diagnostics) {
	t.Helper()
	module, err := filepath.Abs("../../library/nexrl")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("module \"run\" {\n  source = %q\n  name = \"run\"\n%s\n}\n", module, lines)
	dir := t.TempDir()
	for name, text := range map[string]string{"fray.hcl": text, "data.jsonl": "{}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	source, diags := lang.Parse(nil)
	if diags.HasErrors() {
		return nil, diags
	}
	return source.Evaluate(eval.Options{})
}

// TestWrongValuesAreErrorsOfPlan evaluates calls of the module with mistakes. A comment at the end of a line is an error that must name
// the line; "&" is between several.
func TestWrongValuesAreErrorsOfPlan(t *testing.T) {
	for _, test := range []struct{ name, lines string }{
		{"values", `
recovery = "hope" # recovery: want journal, checkpoint.
out      = "gs://bucket/run" # out: want a path that every host of the run sees
journal  = "s3://bucket/run" # journal: want a path that every host of the run sees, or gs://BUCKET/PREFIX.
data = {
  batch_size = 0 # data.batch_size: want a whole number from 1.
  type       = "jsonl"
  data_path  = "gone.jsonl" # data.data_path: there is no such file or directory
}
weight = {
  sync_mode = "async" # weight.sync_mode: want sync, fully-async, batch-async.
}
runtime_monitor = {
  exception_handling = {
    policy = "stop" # runtime_monitor.exception_handling.policy: want stop_on_error
  }
  health_check = {
    timeout = 0 # want a number of seconds above 0.
  }
}
algorithm = {
  type = "ppo" # algorithm.type: want mock, grpo, or module:Class.
}
logger = {
  backend = ["console", "mlflow"] # logger.backend: want one or a list of console
}
trajectory_pool = {
  check_batch_ready_function = "full" # trajectory_pool.check_batch_ready_function: want batch_size_reached
}
resume = {
  mode = "from_path" # resume.resume_path: mode from_path needs
}
service = { # rollouts need an inference service & training needs a train service
}`},
		{"names and types", `
wieght = {} # Did you mean "weight"?
data = {
  batch_sise = 4 # Did you mean "batch_size"?
}
validate = {
  data = {
    pathh = "x" # validate.data has no attribute "pathh".
  }
}
train_worker = {
  save_freq = "often" # a number is required
}
roles = {
  rollout_workers = { count = 2 }    # Did you mean "rollout_worker"?
  train_worker    = { cuont = 2 }    # Did you mean "count"?
}`},
		{"one pool in mode sync, and what only a client of one's own reads", `
rollout_worker = { type = "mock" }
weight         = { validate_freq = 0 } # weight.sync_mode: in mode sync only the first batch after a sync is new enough
service        = {
  train_service = {
    backend    = "mock"
    url        = "http://trainer:80" # service.train_service.url: only a TrainServiceClient of yours as backend
    identifier = "mine"              # service.train_service.identifier: only a TrainServiceClient of yours as backend
  }
}
roles = { trajectory_pool = { count = 2 } }`},
		{"rules", `
recovery = "checkpoint" # set train_worker.save_freq to 1 or more
data = {
  type        = "jsonl" # data.data_path: name the file or directory
  repeat_item = 2
}
weight = {
  validate_freq        = 5 # weight.validate_freq: there are no data for validation
  staleness_threshold  = 2 # only sync_mode batch-async has a threshold
}
trajectory_pool = {
  key_list   = ["group_id"]
  batch_size = 8 # trajectory_pool.batch_size: want a multiple of group_size
  group_size = 3 # trajectory_pool.group_size: no group would be complete
}
rollout_worker = {
  num_workers = 3
  type        = "mock"
}
service = { train_service = { backend = "mock" } }
roles = {
  rollout_worker  = { count = 2, colocation_group = "a" } # roles.rollout_worker.count: num_workers of the section rollout_worker is 3
  train_worker    = { colocation_group = "a" } # the group has 1 of this role and 2 of rollout_worker
  trajectory_pool = { colocation_group = "a" } # this role runs in Go and rollout_worker of the same group in Python
  data_loader     = { count = 2 } # roles.data_loader.count: a run has one
}`},
		{"roles", `
roles = {
  activity_tracker = { count = 1, resources = { cpu = 2 } }
  controller       = { colocation_group = "a", resources = { cpu = 1 } }
  data_loader      = {
    colocation_group = "a"
    command          = ["x"] # leave the command out
    health           = { interval = "9s" }
  }
  train_batch_pool = {
    colocation_group = "a"
    resources        = { memory = "1GiB" } # roles.train_batch_pool.resources: controller of the same colocation group has them
    health           = { timeout = "9s" } # roles.train_batch_pool.health: data_loader of the same colocation group has them
  }
  weight_sync_controller = { colocation_group = "validator" } # want a name of lowercase letters
  trajectory_pool        = { colocation_group = "pools_0" } # want a name of lowercase letters
  inference_service      = { colocation_group = "b" } # leave the group out
  validator              = { count = 1 } # this run has 0
  algorithm_processor    = { count = 0 } # want a whole number from 1
  experiment_logger      = { count = 2 } # a run has at most one
  train_worker           = { resources = { slices = 2 } } # roles.train_worker.resources.slices: a role is one process
  train_service          = { count = 1.5 } # want a whole number from 0
}`},
		{"services that do not run", `
service = {
  train_service     = { backend = "mock" }
  inference_service = { # rollouts need an inference service
    class = "serve:Server"
  }
}
roles = { inference_service = { count = 0 } }`},
		{"what only classes read", `
data = {
  type      = "directory"
  data_path = "data.jsonl" # jsonl reads a file, directory a directory
  args      = { batch_size = 0 } # data.args: want an object with the keys that your class reads
}
validate = {
  data = {
    type      = "jsonl"
    data_path = "." # jsonl reads a file, directory a directory
  }
  eval = {
    type = "my:Validator"
    args = { type = "x" } # validate.eval.args: write the keys of the section beside args
  }
}
resume = {
  mode        = "from_path"
  resume_path = "data.jsonl" # resume.resume_path: there is no such directory.
}
algorithm = {
  kl_ctrl = {
    kl_coef        = 1
    kl_reward_coef = 1 # it is another name of kl_coef
  }
}
service = {
  train_service = {
    backend = "nextrainer" # fray has no client of NexTrainer. Write backend "actor"
    config  = [1]          # service.train_service.config: want an object.
  }
}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, diags := evaluated(t, test.lines)
			var missing []string
			for i, line := range strings.Split(test.lines, "\n") {
				_, comment, _ := strings.Cut(line, " # ")
				for want := range strings.SplitSeq(comment, " & ") {
					if want != "" && !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return namesLine(d, i+4) && strings.Contains(d.Detail, want) }) {
						missing = append(missing, fmt.Sprintf("line %d: %s", i+4, want))
					}
				}
			}
			if len(missing) > 0 {
				t.Errorf("missing errors:\n%s\ngot:\n%v", strings.Join(missing, "\n"), diags.Errs())
			}
		})
	}
}

// namesLine reports whether an error stands at a line of the call, or names it.
func namesLine(d *hcl.Diagnostic, line int) bool {
	if filepath.Base(d.Subject.Filename) == "fray.hcl" && d.Subject.Start.Line == line {
		return true
	}
	return strings.Contains(d.Detail, fmt.Sprintf("(fray.hcl line %d)", line))
}

// TestTheModuleRendersTheConfiguration evaluates a call and reads what the jobs get as their configuration.
func TestTheModuleRendersTheConfiguration(t *testing.T) {
	cfg, diags := evaluated(t, `
  data = {
    type      = "my.data:Loader"
    args      = { folder = "x", sizes = [1, 2] }
    data_path = "data.jsonl"
  }
  rollout_worker = { num_workers = 3 }
  roles = {
    controller          = { colocation_group = "core" }
    trajectory_pool     = { colocation_group = "core", resources = { cpu = 2 } }
    algorithm_processor = { count = 2, env = { A = "1" } }
    experiment_logger   = { count = 1 }
    inference_service   = { count = 2, command = ["serve"], health = { enabled = false } }
  }
  service = { train_service = { backend = "mock" } }
  env     = { B = "2" }`)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	commands := map[string]string{}
	for i := range cfg.Desired.Jobs {
		job := &cfg.Desired.Jobs[i]
		key, _ := job.Addr.Key.Str()
		words := make([]string, 0, len(job.Command))
		for _, word := range job.Command {
			words = append(words, word.String())
		}
		commands[key] = strings.Join(words, " ")
		text := job.Environment.Env["FRAY_RL_CONFIG"].String()
		rolls := job.Addr.Name == "rollout"
		if (job.HealthCheck == nil) != strings.HasPrefix(key, "inference_service") {
			t.Errorf("%s has the health check %+v", job.Addr, job.HealthCheck)
		}
		if rolls != strings.HasPrefix(key, "rollout_worker") || rolls != (len(job.Uses) > 0) {
			t.Errorf("%s waits for %v: want rollout workers alone to wait for the inference service", job.Addr, job.Uses)
		}
		if rolls {
			continue // known after apply
		}
		c, err := Read([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", key, err, text)
		}
		if c.Data.Type != "my.data:Loader" || !filepath.IsAbs(c.Data.DataPath) || *c.Roles["algorithm_processor"].Count != 2 || c.ExperimentName != "run" {
			t.Errorf("%s has another configuration: %s", key, text)
		}
		var document struct {
			Data struct {
				Folder string
				Sizes  []int
			}
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil || document.Data.Folder != "x" || len(document.Data.Sizes) != 2 {
			t.Errorf("%s: args of data are missing: %s", key, text)
		}
	}
	const program = `sh -c exec "${FRAY_PROGRAM:?is set by agents of this version of fray: end the slice by fray destroy and apply again}" rl "$@" fray `
	for key, want := range map[string]string{
		"core": program + "controller:0 trajectory_pool:0", "train_batch_pool": program + "train_batch_pool:0",
		"data_loader":           "python3 -m fray.rl data_loader:0",
		"algorithm_processor_1": "python3 -m fray.rl algorithm_processor:1", "rollout_worker_2": "python3 -m fray.rl rollout_worker:2",
		"inference_service_1": "serve", "experiment_logger": "python3 -m fray.rl experiment_logger:0",
	} {
		if commands[key] != want {
			t.Errorf("process %s: got command %q, want %q", key, commands[key], want)
		}
	}
	if len(commands) != 13 {
		t.Errorf("got %d processes, want 13: %v", len(commands), commands)
	}
}

// TestTheGuidesCallIsRight evaluates the call of the module in docs/guides/nexrl.md, and the example.
func TestTheGuidesCallIsRight(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash(guide))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```hcl\n")
	call, _, also := strings.Cut(rest, "```\n")
	if !ok || !also {
		t.Fatalf("%s has no call of the module", guide)
	}
	example, err := os.ReadFile(filepath.FromSlash("../../examples/nexrl.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := filepath.Abs("../../library/nexrl")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text, source string
		jobs               int
	}{{"guide", call, "./library/nexrl", 25}, {"example", string(example), "../library/nexrl", 6}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"fray.hcl": strings.ReplaceAll(test.text, fmt.Sprintf("%q", test.source), fmt.Sprintf("%q", module))}
			for _, name := range []string{"data/train.jsonl", "nexrl/train.jsonl", "nexrl/validate.jsonl", "pyproject.toml", "uv.lock"} {
				files[name] = "{}\n"
			}
			for name, text := range files {
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			source, diags := lang.Parse(nil)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			cfg, diags := source.Evaluate(eval.Options{})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if got := len(cfg.Desired.Jobs); got != test.jobs {
				t.Errorf("got %d jobs, want %d", got, test.jobs)
			}
		})
	}
}
