package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/pprof/profile"

	agentprocess "github.com/fray-ml/fray/agent/process"
)

// busyProgram spends its time in hot_inner, and has a child that spends it in child_work. It ends once there is a file.
const busyProgram = `
import os, subprocess, sys
def hot_inner():
    s = 0
    for i in range(20000): s += i * i
def child_work():
    sum(i for i in range(50000))
if len(sys.argv) < 3:
    subprocess.Popen([sys.executable, __file__, "--password", "cheetah-of-a-command"])
print("begun", flush=True)
while not os.path.exists("end"):
    child_work() if len(sys.argv) > 2 else hot_inner()
`

const busyJobs = `
job "py" {
  command = ["sh", "-c", "python3 busy.py; true"]
}
`

// profiledStack is a stack with a job in Python, and py-spy on its path.
func profiledStack(t *testing.T) *proofStack {
	t.Helper()
	s := newProofStack(t, nil)
	dir := installPySpy(t)
	s.env = append(s.env, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(s.dir, "busy.py"), []byte(busyProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(t, busyJobs)
	s.must(t, "apply", "--auto-approve")
	if err := within(proofPatience, func() error {
		got, err := s.run(t, nil, "logs", "job.py")
		if err == nil && strings.Count(got.stdout, "begun") < 2 {
			err = os.ErrNotExist
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// installPySpy returns a directory with py-spy, or skips the test where it cannot be installed.
func installPySpy(t *testing.T) string {
	t.Helper()
	if found, err := exec.LookPath("py-spy"); err == nil {
		return filepath.Dir(found)
	}
	dir := t.TempDir()
	for _, installer := range [][]string{{"uv", "pip", "install"}, {"python3", "-m", "pip", "install"}} {
		if err := exec.CommandContext(t.Context(), installer[0], append(installer[1:], "--quiet", "--target", dir, "py-spy==0.4.3")...).Run(); err == nil {
			return filepath.Join(dir, "bin")
		}
	}
	t.Skip("py-spy cannot be installed here, so that no Python is measured")
	return ""
}

// TestProfilePython: a function that is busy is in the profile, of the main process and of its child; command lines are not.
// Two profiles at once do not disturb each other.
func TestProfilePython(t *testing.T) {
	t.Parallel()
	s := profiledStack(t)
	second := s.command(t, nil, "profile", "job.py.0", "--duration", "2s", "--out", "at-once.svg")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	s.must(t, "profile", "job.py", "--duration", "2s", "--out", "at-once.json")
	if err := second.Wait(); err != nil {
		t.Errorf("the second profile at once: %v", err)
	}
	shown := map[string]func() string{
		"speedscope": func() string {
			s.must(t, "profile", "job.py", "--duration", "1s", "--out", "one.json")
			recorded := readEither(t, filepath.Join(s.dir, "one.speedscope.json"), filepath.Join(s.dir, "one.json"))
			if !json.Valid([]byte(recorded)) {
				t.Fatalf("it is no JSON: %.300s", recorded)
			}
			return recorded
		},
		"flame graph": func() string {
			s.must(t, "profile", "job.py.0", "--duration", "1s", "--out", "two.svg")
			return readEither(t, filepath.Join(s.dir, "two.svg"))
		},
		"stacks": func() string { return s.must(t, "profile", "job.py", "--type", "stacks").stdout },
	}
	for place, take := range shown {
		// A process that is between two calls, or that py-spy could not stop in time, is missing in one of them.
		if err := within(proofPatience, func() error {
			text := take()
			if strings.Contains(text, "cheetah-of-a-command") {
				t.Fatalf("the %s has the command line of a process", place)
			}
			if !strings.Contains(text, "hot_inner") || !strings.Contains(text, "child_work") {
				return fmt.Errorf("the %s has not both functions: %.2000s", place, text)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// readEither reads the first of some files that is there.
func readEither(t *testing.T, paths ...string) string {
	t.Helper()
	var err error
	for _, path := range paths {
		var data []byte
		if data, err = os.ReadFile(path); err == nil {
			return string(data)
		}
	}
	t.Fatal(err)
	return ""
}

// TestProfileOfATaskThatEnds: what was measured until then comes.
func TestProfileOfATaskThatEnds(t *testing.T) {
	t.Parallel()
	s := profiledStack(t)
	cmd := s.command(t, nil, "profile", "job.py", "--duration", "10m", "--out", "ended.svg")
	notes, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	lines := bufio.NewScanner(notes)
	for lines.Scan() {
		out.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "Sampling process") { // as py-spy states once it has begun
			if err := os.WriteFile(filepath.Join(s.dir, "end"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if drawn, err := os.ReadFile(filepath.Join(s.dir, "ended.svg")); err != nil || !strings.Contains(string(drawn), "<svg") {
		t.Errorf("got %v, %.200s", err, drawn)
	}
}

// TestProfileOfAKilledClient: nothing is left on the host, and the task goes on. An interrupt keeps what was measured.
func TestProfileOfAKilledClient(t *testing.T) {
	t.Parallel()
	s := profiledStack(t)
	cmd := s.command(t, nil, "profile", "job.py", "--duration", "10m", "--out", "killed.svg")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitProfiler(t, s.dir, true)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	awaitProfiler(t, s.dir, false)
	if got := s.must(t, "status"); !strings.Contains(got.stdout, "running") {
		t.Errorf("the task after its profiler was ended: %s", got)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "killed.svg")); err == nil {
		t.Error("a client that was killed left a file")
	}
	cmd = s.command(t, nil, "profile", "job.py", "--duration", "10m", "--out", "interrupted.svg")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitProfiler(t, s.dir, true)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait() // an error where py-spy had not begun yet
	if _, missing := os.Stat(filepath.Join(s.dir, "interrupted.svg")); (err == nil) != (missing == nil) {
		t.Errorf("after an interrupt: %v, and the file: %v", err, missing)
	}
	awaitProfiler(t, s.dir, false)
}

// awaitProfiler waits until py-spy measures a process of a directory, or until none does.
func awaitProfiler(t *testing.T, dir string, runs bool) {
	t.Helper()
	err := within(proofPatience, func() error {
		all, err := agentprocess.List()
		if err != nil {
			return err
		}
		found := false
		for _, p := range all {
			line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline"))
			words := strings.Split(string(line), "\x00")
			if err != nil || len(words) < 4 || filepath.Base(words[0]) != "py-spy" || words[2] != "--pid" {
				continue
			}
			measured, err := os.Readlink(filepath.Join("/proc", words[3], "cwd"))
			found = found || err == nil && measured == dir
		}
		if found != runs {
			return os.ErrNotExist
		}
		return nil
	})
	if err != nil {
		t.Fatalf("py-spy runs: want %v", runs)
	}
}

// TestProfileGo: a program that serves its profiles is measured, and pprof's own reader reads the file.
func TestProfileGo(t *testing.T) {
	t.Parallel()
	s := newProofStack(t, nil)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "burns"), "./testdata/burns")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.write(t, "job \"go\" {\n  command = [\"./burns\"]\n}\njob \"port\" {\n  command = [\"./burns\", \"port\"]\n  resources {\n    ports = [\"pprof\"]\n  }\n}\n")
	s.must(t, "apply", "--auto-approve")
	for _, job := range []string{"job.go", "job.port"} {
		for _, kind := range []string{"cpu", "memory"} {
			file := filepath.Join(s.dir, job+kind+".pb.gz")
			if err := within(proofPatience, func() error { // it serves a moment after it began
				_, err := s.run(t, nil, "profile", job, "--type", kind, "--duration", "1s", "--out", file)
				if err == nil {
					_, err = os.Stat(file)
				}
				return err
			}); err != nil {
				t.Fatalf("%s, %s: %v: %s", job, kind, err, s.must(t, "logs", job))
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			read, err := profile.Parse(f)
			f.Close()
			if err != nil || !strings.Contains(read.String(), "main.") {
				t.Errorf("%s, %s: %v, %.300s", job, kind, err, read)
			}
		}
		if got := s.must(t, "profile", job, "--type", "stacks"); !strings.Contains(got.stdout, "goroutine ") {
			t.Errorf("the stacks of %s: %s", job, got)
		}
	}
}

// TestDebuggingGuide runs the commands of the guide, for a shorter time.
func TestDebuggingGuide(t *testing.T) {
	t.Parallel()
	s := profiledStack(t)
	guide := strings.NewReplacer("job.train", "job.py", "10s", "1s").Replace(readGuide(t, "debugging.md", ""))
	ran := 0
	for line := range strings.Lines(guide) {
		if command, ok := strings.CutPrefix(line, "    fray "); ok {
			s.must(t, strings.Fields(strings.ReplaceAll(command, "'", ""))...) // quoted for the shell
			ran++
		}
	}
	if ran < 6 {
		t.Errorf("the guide has %d commands", ran)
	}
	for _, file := range []string{"stacks.txt", "report.tar.gz", "with-files.tar.gz"} {
		if info, err := os.Stat(filepath.Join(s.dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if written, err := filepath.Glob(filepath.Join(s.dir, "job.py.0-cpu-*")); err != nil || len(written) != 2 {
		t.Errorf("without --out there are %v, %v; want a flame graph and a profile", written, err)
	}
}
