package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// newActorStack is a stack of examples/actors, whose programs run in the Python
// that the package fray is developed in, under the eyes of a fray watch that
// stop ends.
func newActorStack(t *testing.T, file string, variables ...string) (s *stack, stop func()) {
	t.Helper()
	s = newStack(t, filepath.Join("actors", file))
	s.env = pythonPath(t)
	args := make([]string, len(variables))
	for i, v := range variables {
		args[i] = "--var=" + v
	}
	s.apply(args...)
	return s, s.watch()
}

// pythonPath is PATH with the Python that the package fray is developed in.
func pythonPath(t *testing.T) []string {
	t.Helper()
	bin, err := filepath.Abs("../python/.venv/bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "python")); err != nil {
		if out, err := exec.Command("../scripts/python-env").CombinedOutput(); err != nil {
			t.Fatalf("scripts/python-env: %v\n%s", err, out)
		}
	}
	return []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// TestActorCounter has an actor in Go and one in Python call each other, and
// loses the one in Go while it counts.
func TestActorCounter(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "counter")
	build := exec.Command("go", "build", "-o", program, "./actors/counter")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the counter: %v\n%s", err, out)
	}
	s, stop := newActorStack(t, "counter.hcl", "program="+program, "rounds=100", "pause=0.0025")
	eventually(t, "the client counts", func() bool { return strings.Contains(s.logs("job.client"), "round 5:") })
	s.kill(s.running(filepath.Base(program), "FRAY_ACTOR_CLASS=Counter"))
	eventually(t, "the client has a result", func() bool { return s.job("job.client").Status == "succeeded" })
	var got struct {
		Totals     []int    `json:"totals"`
		Words      string   `json:"words"`
		InOrder    []int    `json:"in_order"`
		Rejections []string `json:"rejections"`
		Counted    counted  `json:"counted"`
	}
	decode(t, s.read("actors/out/counter/result.json"), &got)
	if want := []int{24, 33, 42}; !slices.Equal(got.Totals, want) {
		t.Errorf("totals: got %v, want %v", got.Totals, want)
	}
	if got.Words != "forty-two" {
		t.Errorf("words: got %q, want forty-two", got.Words)
	}
	for i, n := range got.InOrder {
		if n != 43+i {
			t.Fatalf("call %d of 100 in a row: got %d, want %d", i, n, 43+i)
		}
	}
	if len(got.InOrder) != 100 {
		t.Errorf("got %d replies, want 100", len(got.InOrder))
	}
	if len(got.Rejections) != 2 || !strings.Contains(got.Rejections[0], "-1 is negative") || !strings.Contains(got.Rejections[1], "1000 is not in 0 to 999") {
		t.Errorf("rejections: got %q, want that -1 is negative and 1000 is not in 0 to 999", got.Rejections)
	}
	got.Counted.check(t)
	if job := s.job("actor_service.counter"); len(job.Attempts) < 2 || !job.Ready {
		t.Errorf("the counter that was killed: got %+v, want another attempt, which is ready", job)
	}
	stop()
	s.destroy()
}

// counted is what became of the calls of a counter that was killed: each ran
// once, or perhaps, or not at all and then on the next counter.
type counted struct {
	Calls    int `json:"calls"`
	Returned int `json:"returned"`
	Maybe    int `json:"maybe"`
	Restarts int `json:"restarts"`
	Since    int `json:"since"`
	Value    int `json:"value"`
}

func (c counted) check(t *testing.T) {
	t.Helper()
	const start, calls = 15, 100 * 20
	t.Logf("of %d calls %d returned, %d may have run", c.Calls, c.Returned, c.Maybe)
	if c.Calls != calls || c.Returned+c.Maybe != calls {
		t.Errorf("got %+v, want %d calls, each returned or reported as perhaps executed", c, calls)
	}
	if c.Restarts != 1 {
		t.Errorf("got %+v, want one restart", c)
	}
	if ran := c.Value - start; ran < c.Since || ran > c.Since+c.Maybe {
		t.Errorf("got %+v: the new counter counted %d, want the %d that returned and at most %d more", c, ran, c.Since, c.Maybe)
	}
}

// TestActorInference loses a server in the midst of a client's calls.
func TestActorInference(t *testing.T) {
	t.Parallel()
	s, stop := newActorStack(t, "inference.hcl", "pause=0.05")
	eventually(t, "the client runs", func() bool { return len(s.tasks("BATCHES=200")) == 1 })
	s.killTask("FRAY_ACTOR_NAMES=", "inference_1")
	eventually(t, "the client has a result", func() bool { return s.job("job.client").Status == "succeeded" })
	var got struct {
		Points   int     `json:"points"`
		Accuracy float64 `json:"accuracy"`
		Servers  int     `json:"servers"`
	}
	decode(t, s.read("actors/out/inference/result.json"), &got)
	if got.Points != 10_000 || got.Accuracy < 0.99 || got.Servers < 3 {
		t.Errorf("got %+v, want all 10000 points, an accuracy of 0.99 and at least 3 servers", got)
	}
	eventually(t, "the lost server is back", func() bool { return s.job("actor_service.inference[1]").Ready })
	if job := s.job("actor_service.inference[1]"); len(job.Attempts) < 2 {
		t.Errorf("the lost server: got %+v, want another attempt", job)
	}
	stop()
	s.destroy()
}

// TestActorRL loses a rollout worker and the trainer while the policy learns.
func TestActorRL(t *testing.T) {
	t.Parallel()
	s, stop := newActorStack(t, "rl.hcl", "pause=0.05")
	eventually(t, "a worker plays", func() bool { return strings.Contains(s.logs("job.rollout[1]"), "plays") })
	s.killTask("WORKER=1")
	eventually(t, "training goes on", func() bool { return strings.Contains(s.logs("job.trainer"), "training goes on") })
	s.killTask("TARGET=0.9")
	for _, job := range []string{"job.trainer", "job.rollout[0]", "job.rollout[1]", "job.rollout[2]"} {
		eventually(t, job+" has succeeded", func() bool { return s.job(job).Status == "succeeded" })
	}
	var got struct {
		Steps     int     `json:"steps"`
		Reward    float64 `json:"reward"`
		Untrained float64 `json:"untrained"`
		Lesson    string  `json:"lesson"`
	}
	decode(t, s.read("actors/out/rl/result.json"), &got)
	if got.Reward < 0.9 || got.Reward > 1 || got.Untrained > 0.4 || got.Steps < 50 || got.Lesson != "hard" {
		t.Errorf("got %+v, want a reward of 0.9 in the hard lesson, from less than 0.4, after more than a few steps", got)
	}
	for _, job := range []string{"job.trainer", "job.rollout[1]"} {
		if got := s.job(job); len(got.Attempts) < 2 {
			t.Errorf("%s: got %+v, want another attempt", job, got)
		}
	}
	stop()
	s.destroy()
}

// TestActorLeader has one job create the actors and launch the workers.
func TestActorLeader(t *testing.T) {
	t.Parallel()
	s, stop := newActorStack(t, "leader.hcl")
	eventually(t, "the leader has succeeded", func() bool { return s.job("job.leader").Status == "succeeded" })
	lines := strings.Split(strings.TrimSpace(s.logs("job.leader")), "\n")
	var got struct {
		Reward    float64 `json:"reward"`
		Untrained float64 `json:"untrained"`
	}
	decode(t, lines[len(lines)-1], &got)
	if got.Reward < 0.9 || got.Reward > 1 || got.Untrained > 0.4 {
		t.Errorf("got %+v, want a reward of 0.9, from less than 0.4", got)
	}
	stop()
	s.destroy()
}

// TestActorMultislice loses a slice, which the others wait for only for a while.
func TestActorMultislice(t *testing.T) {
	t.Parallel()
	s, stop := newActorStack(t, "multislice.hcl", "pause=0.05", "patience=2")
	eventually(t, "slice 1 trains", func() bool { return strings.Contains(s.logs("job.slice[1]"), "begins at step") })
	s.killTask("SLICE=1")
	for i := range 3 {
		job := "job.slice[" + strconv.Itoa(i) + "]"
		eventually(t, job+" has succeeded", func() bool { return s.job(job).Status == "succeeded" })
	}
	var got struct {
		Steps     int     `json:"steps"`
		Loss      float64 `json:"loss"`
		Untrained float64 `json:"untrained"`
		Accuracy  float64 `json:"accuracy"`
		Slices    []int   `json:"slices"`
	}
	decode(t, s.read("actors/out/multislice/result.json"), &got)
	if got.Steps != 300 || got.Accuracy < 0.98 || got.Loss > 0.1 || got.Untrained < 1 {
		t.Errorf("got %+v, want 300 steps, an accuracy of 0.98, and a loss below 0.1 from above 1", got)
	}
	if job := s.job("job.slice[1]"); len(job.Attempts) < 2 || job.Failures != 1 {
		t.Errorf("the lost slice: got %+v, want one failure and another attempt", job)
	}
	stop()
	s.destroy()
}

// tasks returns the Python processes whose environment has all these texts.
func (s *stack) tasks(marks ...string) []process { return s.running("python", marks...) }

// running returns the processes of a program whose environment has all these texts.
func (s *stack) running(program string, marks ...string) []process {
	s.t.Helper()
	var found []process
	for _, p := range processesOf(s.t, s.dir) {
		env := strings.Join(p.env, "\n")
		missing := slices.ContainsFunc(marks, func(mark string) bool { return !strings.Contains(env, mark) })
		if !missing && len(p.args) > 0 && strings.Contains(filepath.Base(p.args[0]), program) {
			found = append(found, p)
		}
	}
	return found
}

// killTask kills the one task whose environment has these texts.
func (s *stack) killTask(marks ...string) {
	s.t.Helper()
	s.kill(s.tasks(marks...))
}

// kill kills the one process that was found.
func (s *stack) kill(found []process) {
	s.t.Helper()
	if len(found) != 1 {
		s.t.Fatalf("processes to kill: got %v, want one", found)
	}
	if err := syscall.Kill(found[0].pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}
