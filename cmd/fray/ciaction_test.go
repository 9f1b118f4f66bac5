package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ciAction is .github/actions/fray/action.yml, as far as its steps are run.
type ciAction struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []ciStep
	}
}

type ciStep struct {
	ID, Name, If, Uses, Run, Shell string
	Env, With                      map[string]string
}

func readAction(t *testing.T) ciAction {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", ".github", "actions", "fray", "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var a ciAction
	if err := yaml.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// actionRunner runs the steps of the action, as a runner of GitHub Actions would.
type actionRunner struct {
	dir       string            // of the checkout
	temp      string            // RUNNER_TEMP
	env       map[string]string // of the job
	artifacts map[string][]byte // plans by run and name
	github    map[string]string // the context "github"
}

// ended is how a run of the action ended.
type ended struct {
	code    int
	log     string
	summary string
	outputs map[string]string
}

// run runs the action with inputs.
func (r *actionRunner) run(t *testing.T, given map[string]string) ended {
	t.Helper()
	action := readAction(t)
	scope := ciScope{"github": r.github, "runner": {"temp": r.temp}, "inputs": {}}
	for name, input := range action.Inputs {
		scope["inputs"][name] = scope.expand(t, input.Default)
	}
	for name, value := range given {
		if _, ok := action.Inputs[name]; !ok {
			t.Fatalf("the action has no input %q", name)
		}
		scope["inputs"][name] = value
	}
	out := ended{outputs: map[string]string{}}
	summary := filepath.Join(t.TempDir(), "summary.md")
	for _, step := range action.Runs.Steps {
		if step.If != "" && !scope.holds(t, step.If) {
			continue
		}
		switch name, _, _ := strings.Cut(step.Uses, "@"); {
		case step.Run != "":
			var log string
			log, out.code = r.script(t, step, scope, summary)
			out.log += log
		case name == "actions/upload-artifact":
			data, err := os.ReadFile(scope.expand(t, step.With["path"]))
			if err != nil {
				t.Fatal(err)
			}
			r.artifacts[r.github["run_id"]+"/"+scope.expand(t, step.With["name"])] = data
		case name == "actions/download-artifact":
			data, ok := r.artifacts[scope.expand(t, step.With["run-id"])+"/"+scope.expand(t, step.With["name"])]
			if !ok {
				t.Fatalf("there is no artifact %v of run %v among %v", scope.expand(t, step.With["name"]), scope.expand(t, step.With["run-id"]), maps.Keys(r.artifacts))
			}
			dir := scope.expand(t, step.With["path"])
			mustWrite(t, filepath.Join(dir, "fray.plan"), data)
		default:
			t.Fatalf("nothing stands in for %q", step.Uses)
		}
		if out.code != 0 {
			break
		}
	}
	for name, output := range action.Outputs {
		out.outputs[name] = scope.expand(t, output.Value)
	}
	data, _ := os.ReadFile(summary)
	out.summary = string(data)
	return out
}

// script runs a step that is a script, and takes in its outputs.
func (r *actionRunner) script(t *testing.T, step ciStep, scope ciScope, summary string) (log string, code int) {
	t.Helper()
	if step.Shell != "bash" {
		t.Fatalf("step %q has shell %q", step.Name, step.Shell)
	}
	outputs := filepath.Join(t.TempDir(), "outputs")
	script := filepath.Join(t.TempDir(), "script.sh")
	mustWrite(t, script, []byte(step.Run))
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	cmd.Dir = r.dir
	cmd.Env = []string{"GITHUB_OUTPUT=" + outputs, "GITHUB_STEP_SUMMARY=" + summary, "RUNNER_TEMP=" + r.temp}
	for name, value := range r.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	for name, value := range step.Env {
		cmd.Env = append(cmd.Env, name+"="+scope.expand(t, value))
	}
	got, err := endingOf(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if step.ID != "" {
		data, _ := os.ReadFile(outputs)
		scope["steps."+step.ID+".outputs"] = outputsOf(t, string(data))
	}
	return got.stdout + got.stderr, got.code
}

// outputsOf reads outputs as a runner does.
func outputsOf(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines) && text != ""; i++ {
		if name, value, ok := strings.Cut(lines[i], "="); ok {
			out[name] = value
			continue
		}
		name, delimiter, ok := strings.Cut(lines[i], "<<")
		if !ok {
			t.Fatalf("no output: %q", lines[i])
		}
		var value []string
		for i++; i < len(lines) && lines[i] != delimiter; i++ {
			value = append(value, lines[i])
		}
		out[name] = strings.Join(value, "\n")
	}
	return out
}

// ciScope has the contexts of expressions, by the path before their last name.
type ciScope map[string]map[string]string

var ciExpression = regexp.MustCompile(`\$\{\{\s*([a-zA-Z0-9_.-]+)\s*\}\}`)

// expand evaluates the expressions of a text. Those of the action are names alone.
func (s ciScope) expand(t *testing.T, text string) string {
	t.Helper()
	out := ciExpression.ReplaceAllStringFunc(text, func(e string) string { return s.value(t, ciExpression.FindStringSubmatch(e)[1]) })
	if strings.Contains(out, "${{") {
		t.Fatalf("the test cannot evaluate %q", text)
	}
	return out
}

func (s ciScope) value(t *testing.T, path string) string {
	t.Helper()
	dot := strings.LastIndex(path, ".")
	values, ok := s[path[:dot]]
	value, has := values[path[dot+1:]]
	if _, isStep := strings.CutPrefix(path, "steps."); !isStep && (!ok || !has) {
		t.Fatalf("nothing is called %q", path)
	}
	return value
}

// holds evaluates a condition: comparisons with a text, joined by &&.
func (s ciScope) holds(t *testing.T, condition string) bool {
	t.Helper()
	comparison := regexp.MustCompile(`^([a-zA-Z0-9_.-]+) (==|!=) '([^']*)'$`)
	for part := range strings.SplitSeq(condition, " && ") {
		found := comparison.FindStringSubmatch(part)
		if found == nil {
			t.Fatalf("the test cannot evaluate %q", condition)
		}
		if (s.value(t, found[1]) == found[3]) != (found[2] == "==") {
			return false
		}
	}
	return true
}

func mustWrite(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whatever the action and the workflows use is pinned by a full commit hash, and no script has an
// expression in it: what stands in for it would be run.
func TestActionIsPinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z]+/[a-z-]+@[0-9a-f]{40}$|^fray-ml/fray/\.github/actions/fray@COMMIT$`)
	used := 0
	for _, step := range readAction(t).Runs.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("the script of step %q has an expression", step.Name)
		}
		if step.Uses != "" {
			used++
			if !pinned.MatchString(step.Uses) {
				t.Errorf("%q is not pinned", step.Uses)
			}
		}
	}
	workflows, err := filepath.Glob(filepath.Join("..", "..", "ci", "github", "*.yml"))
	if err != nil || len(workflows) != 4 {
		t.Fatalf("got %v, %v", workflows, err)
	}
	for _, path := range workflows {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			Permissions map[string]string
			Concurrency map[string]any
			Jobs        map[string]struct {
				Steps []ciStep
			}
		}
		if err := yaml.Unmarshal(data, &w); err != nil {
			t.Fatal(err)
		}
		if w.Permissions["contents"] != "read" || fmt.Sprint(w.Concurrency["group"]) == "<nil>" {
			t.Errorf("%s: permissions %v, concurrency %v", path, w.Permissions, w.Concurrency)
		}
		inputs := readAction(t).Inputs
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				used++
				if !pinned.MatchString(step.Uses) {
					t.Errorf("%s: %q is not pinned", path, step.Uses)
				}
				for name := range step.With {
					if _, ok := inputs[name]; strings.HasPrefix(step.Uses, "fray-ml/") && !ok {
						t.Errorf("%s: the action has no input %q", path, name)
					}
				}
			}
		}
	}
	if used < 12 {
		t.Errorf("found %d uses", used)
	}
}
