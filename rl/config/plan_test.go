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
data = {
  batch_size = 0 # data.batch_size: want a whole number from 1.
  type       = "jsonl"
  data_path  = "gone.jsonl" # data.data_path: there is no such file or directory.
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
		{"rules", `
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
roles = { # a has 2 rollout_worker, 1 train_worker & rollout_worker in Python, train_worker in Python, trajectory_pool in Go & a run has one train_batch_pool
  rollout_worker  = { count = 2, colocation_group = "a" } # roles: rollout_worker.count differs from num_workers
  train_worker    = { colocation_group = "a" }
  trajectory_pool = { colocation_group = "a" }
  data_loader     = { count = 2 }
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
    inference_service   = { count = 2, command = ["serve"] }
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
		if strings.HasPrefix(key, "rollout_worker") {
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
	const program = `sh -c exec "$FRAY_PROGRAM" rl "$@" fray `
	for key, want := range map[string]string{
		"core": program + "controller:0 trajectory_pool:0", "train_batch_pool": program + "train_batch_pool:0",
		"data_loader":           "python3 -m fray.rl data_loader:0",
		"algorithm_processor_1": "python3 -m fray.rl algorithm_processor:1", "rollout_worker_2": "python3 -m fray.rl rollout_worker:2",
		"inference_service_1": "serve",
	} {
		if commands[key] != want {
			t.Errorf("process %s: got command %q, want %q", key, commands[key], want)
		}
	}
	if len(commands) != 12 {
		t.Errorf("got %d processes, want 12: %v", len(commands), commands)
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
