// Package examples applies every example through the real fray binary, on this
// machine, and checks what its programs computed. It holds tests only.
package examples

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait; it is generous because machines are busy.
const patience = 5 * time.Minute

// fray is the binary under test.
var fray string

// programVariable names a fray that scripts/test has built already.
const programVariable = "FRAY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if fray = os.Getenv(programVariable); fray != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "fray-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fray = filepath.Join(dir, "fray")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", fray, "../cmd/fray") // as it is released
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build fray: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestQuickstart(t *testing.T) {
	t.Parallel()
	s := newStack(t, "quickstart.hcl")
	s.applyToEnd()
	check := func() error {
		out, err := exec.Command("sh", filepath.Join(s.dir, "quickstart/check.sh"), filepath.Join(s.dir, "out/quickstart")).CombinedOutput()
		t.Logf("check.sh: %s", out)
		return err
	}
	if err := check(); err != nil {
		t.Errorf("the counts are not those of a single process: %v", err)
	}
	var counts string
	s.output("counts", &counts)
	if want := filepath.Join(s.dir, "out/quickstart/counts.tsv"); counts != want {
		t.Errorf("output counts: got %q, want %q", counts, want)
	}

	spoilt := regexp.MustCompile(`(?m)^light\t.*$`).ReplaceAllString(s.read("out/quickstart/counts.tsv"), "light\t1")
	if err := os.WriteFile(filepath.Join(s.dir, "out/quickstart/counts.tsv"), []byte(spoilt), 0o644); err != nil {
		t.Fatal(err)
	}
	if check() == nil {
		t.Error("check.sh accepts a wrong count")
	}
	s.destroy()
}

// TestTraining trains twice as the guide does: undisturbed, and losing a host in mid-run. The
// results must be the same to the last bit.
func TestTraining(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("uv"); err != nil {
		t.Fatal("uv is not on PATH; make test installs it into .tools/bin")
	}
	s := newStack(t, "training.hcl")
	s.follow("training.md", 0)
	undisturbed := s.read("out/training/result.json")

	s.follow("training.md", 1)
	stop := s.following("training.md", 2)
	eventually(t, "there is a checkpoint of step 30", func() bool { return s.newestCheckpoint("out/broken/checkpoints") >= 30 })
	if shown := s.follow("training.md", 3); !strings.Contains(shown, "step") {
		t.Errorf("the guide's commands show no step:\n%s", shown)
	}
	eventually(t, "training is done", func() bool { return s.exists("out/broken/result.json") })
	eventually(t, "the job has succeeded", func() bool { return s.job("job.train").Status == "succeeded" })
	stop()

	disturbed := s.read("out/broken/result.json")
	if disturbed != undisturbed {
		t.Errorf("got %s after the loss of a host, want what the undisturbed run has: %s", disturbed, undisturbed)
	}
	var result struct {
		Accuracy  float64 `json:"accuracy"`
		Processes int     `json:"processes"`
		Steps     int     `json:"steps"`
	}
	decode(t, undisturbed, &result)
	if result.Accuracy < 0.88 || result.Accuracy > 1 || result.Processes != 4 || result.Steps != 120 {
		t.Errorf("got %+v, want an accuracy of at least 0.88 after 120 steps of 4 processes", result)
	}
	s.wantResumed()
	s.destroy()
}

// wantResumed checks that the job was tried again, that the lost host spent none
// of the failure budget, and that training went on where it was.
func (s *stack) wantResumed() {
	s.t.Helper()
	job := s.job("job.train")
	s.t.Logf("attempts: %+v", job.Attempts)
	if len(job.Attempts) < 2 || job.Failures != 0 {
		s.t.Errorf("got %+v, want more than one attempt and no failure", job)
	}
	log := s.logs("job.train")
	resumed := regexp.MustCompile(`resumed from step (\d+)`).FindStringSubmatch(log)
	if resumed == nil {
		s.t.Fatalf("no process says that it resumed:\n%s", log)
	}
	if step, err := strconv.Atoi(resumed[1]); err != nil || step < 30 || step >= 120 {
		s.t.Errorf("resumed from step %s, want one from 30 to 119", resumed[1])
	}
}

func (s *stack) newestCheckpoint(dir string) int {
	names, err := filepath.Glob(filepath.Join(s.dir, dir, "step-*.npz"))
	if err != nil {
		s.t.Fatal(err)
	}
	newest := 0
	for _, name := range names {
		step, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "step-"), ".npz"))
		if err != nil {
			s.t.Fatal(err)
		}
		newest = max(newest, step)
	}
	return newest
}

func (s *stack) exists(path string) bool {
	_, err := os.Stat(filepath.Join(s.dir, path))
	return err == nil
}

func TestRL(t *testing.T) {
	t.Parallel()
	s := newStack(t, "rl.hcl")
	s.follow("rl.md", 0)
	var result struct {
		Steps  int     `json:"steps"`
		Mean   float64 `json:"mean_episode"`
		Target float64 `json:"target"`
	}
	decode(t, s.read("out/rl/result.json"), &result)
	if result.Target != 475 || result.Mean < result.Target || result.Mean > 500 || result.Steps < 10 {
		t.Errorf("got %+v, want a mean episode of at least 475 of 500, learned in more than a few steps", result)
	}
	for _, job := range []string{"coordinator", "trainer", "rollout[0]", "rollout[1]", "rollout[2]"} {
		if got := s.job("job_group.rl.job." + job).Status; got != "succeeded" {
			t.Errorf("job %s: got %s, want succeeded", job, got)
		}
	}
	for i := range 3 {
		log := s.logs(fmt.Sprintf("job_group.rl.job.rollout[%d]", i))
		if played := regexp.MustCompile(`played ([1-9]\d*) episodes`).FindString(log); played == "" {
			t.Errorf("rollout worker %d played nothing:\n%s", i, log)
		}
	}
	s.destroy()
}

func TestInference(t *testing.T) {
	t.Parallel()
	s := newStack(t, "inference.hcl")
	s.follow("inference.md", 0)
	var endpoints []string
	s.output("endpoints", &endpoints)
	slices.Sort(endpoints)
	if len(slices.Compact(endpoints)) != 3 {
		t.Fatalf("got endpoints %q, want three different ones", endpoints)
	}
	if shown := s.follow("inference.md", 1, "ENDPOINT", endpoints[2]); !strings.Contains(shown, `"completion"`) {
		t.Errorf("the guide's query shows\n%s", shown)
	}

	prompts := strings.Split(strings.TrimSpace(s.read("inference/prompts.txt")), "\n")
	answers := s.answers("out/inference/result.jsonl")
	if len(answers) != len(prompts) {
		t.Fatalf("got %d answers, want one for each of %d prompts", len(answers), len(prompts))
	}
	text := strings.Join(strings.Fields(s.read("data/opticks.txt")), " ")
	served := map[int]int{}
	for i, a := range answers {
		served[a.Replica]++
		if a.Prompt != prompts[i] {
			t.Errorf("answer %d is to %q, want %q", i, a.Prompt, prompts[i])
		}
		if err := plausible(text, a); err != nil {
			t.Error(err)
		}
	}
	for replica := range 3 {
		if got, want := served[replica], len(prompts)/3; got != want {
			t.Errorf("replica %d answered %d prompts, want %d", replica, got, want)
		}
	}
	s.wantReplicaBack(1)
	s.follow("inference.md", 2)
	s.wantGone()
}

// TestColocated: a trainer and the inference service beside it are one group.
func TestColocated(t *testing.T) {
	t.Parallel()
	s := newStack(t, "colocated.hcl")
	s.follow("inference.md", 3)
	var endpoints []string
	s.output("endpoints", &endpoints)
	if len(endpoints) != 2 {
		t.Errorf("got endpoints %q, want two", endpoints)
	}
	served := map[int]int{}
	for _, a := range s.answers("out/colocated/result.jsonl") {
		served[a.Replica]++
	}
	if served[0] == 0 || served[1] == 0 {
		t.Errorf("got answers %v by replica, want some of each", served)
	}
	for replica := range 2 {
		if job := s.job(fmt.Sprintf("job_group.math.actor_service.inference[%d]", replica)); !job.Ready {
			t.Errorf("replica %d is %s and not ready", replica, job.Status)
		}
	}
	s.destroy()
}

// wantReplicaBack kills the server of a replica and waits until another one
// serves in its place, while the other replicas go on.
func (s *stack) wantReplicaBack(replica int) {
	s.t.Helper()
	stop := s.watch()
	defer stop()
	all := processesOf(s.t, s.dir)
	server := slices.IndexFunc(all, func(p process) bool {
		return slices.Contains(p.env, "REPLICA="+strconv.Itoa(replica))
	})
	if server < 0 {
		s.t.Fatalf("no process of replica %d runs", replica)
	}
	if err := syscall.Kill(all[server].pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "the replica is back", func() bool {
		job := s.job(fmt.Sprintf("actor_service.inference[%d]", replica))
		return len(job.Attempts) == 2 && job.Ready
	})
	for other := range 3 {
		if got := s.job(fmt.Sprintf("actor_service.inference[%d]", other)); other != replica && len(got.Attempts) != 1 {
			s.t.Errorf("replica %d: got %+v, want it undisturbed", other, got)
		}
	}
}

type answer struct {
	Prompt     string `json:"prompt"`
	Completion string `json:"completion"`
	Replica    int    `json:"replica"`
}

func (s *stack) answers(path string) []answer {
	s.t.Helper()
	var all []answer
	lines := bufio.NewScanner(strings.NewReader(s.read(path)))
	for lines.Scan() {
		var a answer
		decode(s.t, lines.Text(), &a)
		all = append(all, a)
	}
	return all
}

// plausible reports whether the model can have said this: each character with
// the six before it must stand somewhere in the text that it learned from.
func plausible(text string, a answer) error {
	const order, length = 6, 120
	prompt, completion := []rune(a.Prompt), []rune(a.Completion)
	if len(completion) != length {
		return fmt.Errorf("%q: got %d characters, want %d: %q", a.Prompt, len(completion), length, a.Completion)
	}
	said := append(prompt[len(prompt)-order:], completion...)
	for i := range completion {
		if window := string(said[i : i+order+1]); !strings.Contains(text, window) {
			return fmt.Errorf("%q: the completion has %q, which the text has not: %q", a.Prompt, window, a.Completion)
		}
	}
	return nil
}
