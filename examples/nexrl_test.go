package examples

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// whole has runs of NexRL make all their updates, and lose each process of theirs, as make soak does.
var whole = flag.Bool("nexrl.whole", false, "whole runs of NexRL, which lose each of their processes")

// newRLStack is a run of NexRL with its module beside the examples, by a Python that has what it needs.
func newRLStack(t *testing.T, file string) *stack {
	t.Helper()
	s := newStack(t, file)
	s.env = append(pythonPath(t), "PYTHONDONTWRITEBYTECODE=1")
	if err := os.CopyFS(filepath.Join(filepath.Dir(s.dir), "library"), os.DirFS("../library")); err != nil {
		t.Fatal(err)
	}
	return s
}

// record is a line of a run's metrics.
type record struct {
	Step int64              `json:"step"`
	Data map[string]float64 `json:"data"`
}

// validations are the values of a validation's metric by step, as the run has logged them.
func (s *stack) validations(out, name string) map[int64]float64 {
	s.t.Helper()
	found := map[int64]float64{}
	data, err := os.ReadFile(filepath.Join(s.dir, out, "metrics", "metrics.jsonl"))
	if err != nil {
		return found
	}
	lines := data[:strings.LastIndexByte(string(data), '\n')+1]
	for line := range strings.Lines(string(lines)) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		if value, ok := r.Data[name]; ok {
			found[r.Step] = value
		}
	}
	return found
}

const coordination = `module.run.job_group.run.job.role["coordination"]`

// finished waits until the run has ended by itself.
func (s *stack) finished() {
	s.t.Helper()
	eventually(s.t, "the run has ended", func() bool {
		status := s.job(coordination).Status
		if status == "failed" {
			s.t.Fatalf("the run failed:\n%s", s.logs(coordination))
		}
		return status == "succeeded"
	})
}

// loss is of a process of a run, once a step is trained: by what its command line has.
type loss struct {
	step int64
	what []string
}

// TestNexRL runs the example as its guide does, with fewer updates, and kills processes of it on the way: the pool and the
// controller, which share one, a rollout worker, the train worker, and one of the train service's gang. It learns all the same.
func TestNexRL(t *testing.T) {
	t.Parallel()
	s := newRLStack(t, "nexrl.hcl")
	const steps = 20
	s.follow("nexrl.md", 0, "examples/nexrl.hcl", "examples/nexrl.hcl --var steps=20")
	s.lose([]loss{
		{1, []string{"fray.rl", "rollout_worker:0"}},
		{4, []string{"trajectory_pool:0", "controller:0"}},
		{8, []string{"fray.rl", "train_worker:0"}},
		{12, []string{"train_service.py"}},
	})
	curve := s.follow("nexrl.md", 1) // follows the run to its end
	s.finished()
	matches := s.validations("out/nexrl", "val/exact_match")
	if matches[0] > 0.1 || matches[steps] < 0.95 || len(matches) != steps/10+1 {
		t.Errorf("got exact matches %v, want about 0.02 at step 0, and from 0.95 on at step %d, every 10 steps", matches, steps)
	}
	if !regexp.MustCompile(`val/exact_match  [01][0-9.]* at step 20`).MatchString(curve) || strings.Count(curve, "\n") < 10 {
		t.Errorf("the guide's command draws\n%s", curve)
	}
	for _, file := range []string{"global_step_10/run.json", "global_step_20/weights.npz"} {
		if !s.exists("out/nexrl/checkpoints/" + file) {
			t.Errorf("there is no %s among the checkpoints", file)
		}
	}
	s.follow("nexrl.md", 3)
	eventually(t, "the controller has ended, too", func() bool { return len(processesOf(t, s.dir)) == 0 })
	s.gone = true
}

// TestNexRLBitByBit makes all updates of the example, once undisturbed and once while each of its processes is killed: the
// weights are the same.
func TestNexRLBitByBit(t *testing.T) {
	if !*whole {
		t.Skip("it takes minutes: make soak runs it with -nexrl.whole")
	}
	weights := map[bool]string{}
	for _, disturbed := range []bool{false, true} {
		s := newRLStack(t, "nexrl.hcl")
		apart := strings.Replace(s.read("nexrl.hcl"), `trajectory_pool        = { colocation_group = "coordination" }`, "", 1)
		if err := os.WriteFile(filepath.Join(s.dir, "nexrl.hcl"), []byte(apart), 0o644); err != nil {
			t.Fatal(err)
		}
		s.apply()
		if disturbed {
			s.lose([]loss{
				{3, []string{"fray.rl", "rollout_worker:0"}},
				{7, []string{"trajectory_pool:0"}},
				{12, []string{"fray.rl", "train_worker:0"}},
				{16, []string{"controller:0"}},
				{22, []string{"train_service.py"}},
				{26, []string{"fray.rl", "inference_service:0"}},
			})
		}
		s.finished()
		matches := s.validations("out/nexrl", "val/exact_match")
		if matches[60] < 0.95 {
			t.Errorf("got exact matches %v, want 0.95 at step 60", matches)
		}
		weights[disturbed] = s.read("out/nexrl/checkpoints/global_step_60/weights.npz")
		s.run("destroy", "--auto-approve", s.file)
		eventually(t, "the controller has ended, too", func() bool { return len(processesOf(t, s.dir)) == 0 })
		s.gone = true
	}
	if weights[true] != weights[false] {
		t.Error("the weights of the run that lost processes are other ones than those of the run that did not")
	}
}

// TestNexRLAgent runs the guide's other example: an agent learns to use its tool over several turns.
func TestNexRLAgent(t *testing.T) {
	if !*whole {
		t.Skip("it takes minutes: make soak runs it with -nexrl.whole; test_n86_the_agent_learns is the same in little")
	}
	s := newRLStack(t, "nexrl-agent.hcl")
	shown := s.follow("nexrl.md", 4)
	t.Log(shown)
	rewards := s.validations("out/nexrl-agent", "val/reward")
	if rewards[0] > 0.5 || rewards[20] < 0.95 || !strings.Contains(shown, "at step 20") {
		t.Errorf("got rewards %v, want less than 0.5 at step 0, and 0.95 at step 20; it showed\n%s", rewards, shown)
	}
	eventually(t, "the controller has ended, too", func() bool { return len(processesOf(t, s.dir)) == 0 })
	s.gone = true
}

// lose kills processes of a run, one after another.
func (s *stack) lose(all []loss) {
	s.t.Helper()
	for _, l := range all {
		eventually(s.t, fmt.Sprintf("step %d is trained", l.step), func() bool { return s.step() >= l.step })
		s.killOne(l.what)
	}
}

// step is the last one that is trained, as the run has logged it.
func (s *stack) step() int64 {
	s.t.Helper()
	last := int64(-1)
	for step := range s.validations("out/nexrl", "training/global_step") {
		last = max(last, step)
	}
	return last
}

// killOne kills a process of the stack by what its command line has.
func (s *stack) killOne(words []string) {
	s.t.Helper()
	eventually(s.t, "there is a process of "+strings.Join(words, " "), func() bool {
		for _, p := range processesOf(s.t, s.dir) {
			line := strings.Join(p.args, " ")
			isShim := slices.Contains(p.args, "shim")
			if !isShim && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
				return syscall.Kill(p.pid, syscall.SIGKILL) == nil
			}
		}
		return false
	})
}
