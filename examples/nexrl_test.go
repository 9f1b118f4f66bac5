package examples

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// withKills has the runs of NexRL be whole and lose every process of theirs, as make soak does.
var withKills = flag.Bool("nexrl.kills", false, "whole runs of NexRL, and one that loses each of its processes")

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
	whole := data[:strings.LastIndexByte(string(data), '\n')+1]
	for line := range strings.Lines(string(whole)) {
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

// TestNexRL runs the example as its guide does, and looks at the curve as it does.
func TestNexRL(t *testing.T) {
	t.Parallel()
	s := newRLStack(t, "nexrl.hcl")
	steps, args := int64(60), ""
	if !*withKills {
		steps, args = 20, " --var steps=20"
	}
	s.follow("nexrl.md", 0, "examples/nexrl.hcl", "examples/nexrl.hcl"+args)
	stop := s.following("nexrl.md", 1)
	s.finished()
	curve := s.follow("nexrl.md", 2)
	stop()
	matches := s.validations("out/nexrl", "val/exact_match")
	if matches[0] > 0.1 || matches[steps] < 0.95 || int64(len(matches)) != steps/10+1 {
		t.Errorf("got exact matches %v, want about 0.02 at step 0, and from 0.95 on at step %d, every 10 steps", matches, steps)
	}
	if !regexp.MustCompile(`val/exact_match  [01][0-9.]* at step `+"(20|60)").MatchString(curve) || strings.Count(curve, "\n") < 10 {
		t.Errorf("the guide's command draws\n%s", curve)
	}
	if !s.exists("out/nexrl/checkpoints/global_step_10/run.json") || !s.exists("out/nexrl/checkpoints/global_step_20/weights.npz") {
		t.Error("there are no checkpoints of steps 10 and 20")
	}
	s.follow("nexrl.md", 3)
	s.wantGone()
}

// killed are the processes of the run that are lost, at which step: by what their command lines have.
var killed = []struct {
	step int64
	what []string
}{
	{3, []string{"fray.rl", "rollout_worker:0"}},
	{7, []string{"rl", "trajectory_pool:0"}},
	{12, []string{"fray.rl", "train_worker:0"}},
	{16, []string{"rl", "controller:0"}},
	{22, []string{"train_service.py"}},
	{26, []string{"fray.rl", "inference_service:0"}},
}

// TestNexRLLosesProcesses kills processes of a run on its way: it learns the same, bit by bit.
func TestNexRLLosesProcesses(t *testing.T) {
	if !*withKills {
		t.Skip("make soak runs it; python/tests/test_rl_example.py loses processes of a short run")
	}
	weights := map[bool]string{}
	for _, disturbed := range []bool{false, true} {
		s := newRLStack(t, "nexrl.hcl")
		apart := strings.Replace(s.read("nexrl.hcl"), `trajectory_pool        = { colocation_group = "coordination" }`, "", 1)
		if err := os.WriteFile(filepath.Join(s.dir, "nexrl.hcl"), []byte(apart), 0o644); err != nil {
			t.Fatal(err)
		}
		s.apply()
		stop := s.watch()
		if disturbed {
			for _, k := range killed {
				eventually(t, "the run gets on", func() bool { return s.step() >= k.step })
				s.killOne(k.what)
			}
		}
		s.finished()
		stop()
		matches := s.validations("out/nexrl", "val/exact_match")
		if matches[60] < 0.95 {
			t.Errorf("got exact matches %v, want 0.95 at step 60", matches)
		}
		weights[disturbed] = s.read("out/nexrl/checkpoints/global_step_60/weights.npz")
		s.destroy()
	}
	if weights[true] != weights[false] {
		t.Error("the weights of the run that lost processes are other ones than those of the run that did not")
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
