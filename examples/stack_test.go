package examples

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stack is one example in a copy of this directory, driven through the real binary.
type stack struct {
	t    *testing.T
	dir  string        // the copy
	file string        // the example's HCL file
	gone bool          // destroyed
	env  []string      // more variables of every command
	wait time.Duration // for each command; 0: patience
}

// newStack copies the examples, and takes everything down when the test ends.
func newStack(t *testing.T, file string) *stack {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{t: t, dir: filepath.Join(dir, "examples"), file: file}
	if err := copyExamples(s.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// copyExamples copies what is shipped: neither state nor results of earlier runs.
func copyExamples(to string) error {
	return filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && (name == ".fray" || name == "out" || name == "__pycache__" || name == ".venv"):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), data, 0o644)
	})
}

// command is a fray command on the stack's file, which ends with the test.
func (s *stack) command(ctx context.Context, verb string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, fray, append([]string{verb}, args...)...)
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), "EXAMPLE_DIR="+s.dir), s.env...) // all that it starts can be told by this
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// run runs a fray command, which must succeed, and returns its output.
func (s *stack) run(verb string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), cmp.Or(s.wait, patience))
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := s.command(ctx, verb, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("fray %s %s: %v\n%s%s", verb, strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// applyToEnd applies the example and follows its jobs to their end.
func (s *stack) applyToEnd(args ...string) {
	s.t.Helper()
	s.apply(append(args, "--wait=complete")...)
}

func (s *stack) apply(args ...string) {
	s.t.Helper()
	s.gone = false
	s.run("apply", append(args, "--auto-approve", s.file)...)
}

// watch keeps the stack true until the returned function is called.
func (s *stack) watch(args ...string) (stop func()) {
	s.t.Helper()
	_, stop = s.loggedWatch(args...)
	return stop
}

// loggedWatch is watch with what it logs.
func (s *stack) loggedWatch(args ...string) (log func() string, stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var output lockedBuffer
	cmd := s.command(ctx, "watch", append(args, s.file)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		err := cmd.Wait()
		if cmd.ProcessState.ExitCode() != 0 || s.t.Failed() {
			s.t.Logf("fray watch: %v\n%s", err, &output)
		}
	}
	s.t.Cleanup(stop)
	return output.String, stop
}

// lockedBuffer is what a process writes while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// destroy takes the stack down and sees that nothing of it runs any more.
func (s *stack) destroy() {
	s.t.Helper()
	s.run("destroy", "--auto-approve", s.file)
	s.wantGone()
}

// wantGone sees that nothing of a stack that was taken down runs any more.
func (s *stack) wantGone() {
	s.t.Helper()
	left := processesOf(s.t, s.dir)
	for _, p := range left {
		s.t.Errorf("after destroy a process is left: %s", p)
	}
	s.gone = len(left) == 0
}

// end leaves nothing behind, whatever went wrong in the test.
func (s *stack) end() {
	if s.gone {
		return
	}
	for _, args := range [][]string{{"status", "-C", s.file}, {"destroy", "--auto-approve", s.file}} {
		out, err := s.command(context.Background(), args[0], args[1:]...).CombinedOutput()
		s.t.Logf("fray %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, p := range processesOf(s.t, s.dir) {
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.t.Logf("kill %s: %v", p, err)
		}
	}
}

// job is a part of what fray status --json says of a job.
type job struct {
	Status   string    `json:"status"`
	Ready    bool      `json:"ready"`
	Failures int       `json:"failures"`
	Attempts []attempt `json:"attempts"`
}

type attempt struct {
	Number  int    `json:"number"`
	Outcome string `json:"outcome"`
}

func (s *stack) job(addr string) job {
	s.t.Helper()
	var status struct {
		Jobs []job `json:"jobs"`
	}
	decode(s.t, s.run("status", "--json", "-C", s.file, addr), &status)
	if len(status.Jobs) != 1 {
		s.t.Fatalf("status of %s: got %d jobs, want one", addr, len(status.Jobs))
	}
	return status.Jobs[0]
}

// output decodes an output's value.
func (s *stack) output(name string, into any) {
	s.t.Helper()
	decode(s.t, s.run("output", "-C", s.file, name), into)
}

func (s *stack) logs(addr string) string {
	s.t.Helper()
	return s.run("logs", "-C", s.file, addr)
}

func decode(t *testing.T, data string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

// read returns a file that a run has written.
func (s *stack) read(path string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, patience, what, holds)
}

// within is eventually with another patience.
func within(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		began := time.Now()
		if holds() {
			return
		}
		select {
		case <-time.After(pollDelay(time.Since(began))):
		case <-ctx.Done():
			t.Fatalf("waited %s in vain until %s", patience, what)
		}
	}
}

// pollDelay is how long to wait after a look that took a time: six times as long, so that
// running fray to look leaves most of a machine to what is awaited.
func pollDelay(took time.Duration) time.Duration {
	return min(max(6*took, 50*time.Millisecond), time.Second)
}
