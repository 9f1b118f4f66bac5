package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// crashConfig declares 20 resources. Every task that starts adds a line to
// starts, so that a task started twice shows.
const crashConfig = `
namespace "a" {}
namespace "b" {}
namespace "c" {}

reservation "pool" {
  min {
    cpu    = 1
    slices = 2
  }
}

locals {
  run = ["sh", "-c", "echo $FRAY_JOB_ID $FRAY_ATTEMPT $FRAY_TASK_INDEX >> %[1]s; exec sleep 1000"]
}

job "one" {
  count     = 8
  namespace = namespace.a
  command   = local.run
}

job "after" {
  count      = 2
  namespace  = namespace.b
  command    = local.run
  depends_on = [job.done]
}

job "done" {
  command = ["sh", "-c", "echo $FRAY_JOB_ID $FRAY_ATTEMPT $FRAY_TASK_INDEX >> %[1]s"]
}

job "drawn" {
  command = local.run
  resources {
    reservation = reservation.pool
    slices      = 2
  }
}

job_group "g" {
  job "left" {
    count   = 2
    command = local.run
  }
  job "right" {
    command = local.run
    resources {
      tpu = "v5litepod-8"
    }
  }
}
`

// starts are what a whole apply of crashConfig starts, each exactly once.
const crashStarts = 8 + 2 + 1 + 2 + 2 + 1

// TestCrashApply kills an apply at each of its store and provider calls and
// shows that the next one ends in the same world: nothing left behind, nothing
// started twice. With -short, one point of each kind is tried.
func TestCrashApply(t *testing.T) {
	whole := t.TempDir()
	world := newCrashWorld(t, whole)
	log := filepath.Join(whole, "points.log")
	if out, err := world.fray([]string{"FRAY_TEST_CRASH_LOG=" + log}, "apply", "--auto-approve").CombinedOutput(); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
	want := world.picture(t)
	world.end()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	points := strings.Split(strings.TrimSpace(string(data)), "\n")
	chosen := choosePoints(points)
	t.Logf("%d crash points, %d of them tried", len(points), len(chosen))

	for _, at := range chosen {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			crashOnce(t, at, points[at-1], want)
		})
	}
}

// choosePoints returns the numbers of the points to try, from 1.
func choosePoints(points []string) []int {
	seen := map[string]bool{}
	var chosen []int
	for i, p := range points {
		_, name, _ := strings.Cut(p, " ")
		kind, _, _ := strings.Cut(name, "-") // "before create one"
		if !testing.Short() || !seen[kind] {
			chosen = append(chosen, i+1)
		}
		seen[kind] = true
	}
	return chosen
}

func crashOnce(t *testing.T, at int, point, want string) {
	w := newCrashWorld(t, t.TempDir())
	defer w.end()
	out, err := w.fray([]string{fmt.Sprintf("FRAY_TEST_CRASH_AT=%d", at)}, "apply", "--auto-approve").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		// Calls run beside each other, so a run may have fewer of them.
		if err != nil {
			t.Errorf("point %s: apply ended neither well nor by SIGKILL: %v\n%s", point, err, out)
		}
	}
	if out, err := w.fray(nil, "apply", "--auto-approve").CombinedOutput(); err != nil {
		t.Errorf("point %s: the next apply failed: %v\n%s", point, err, out)
		return
	}
	if got := w.picture(t); got != want {
		t.Errorf("point %s: the world differs.\ngot:\n%s\nwant:\n%s", point, got, want)
	}
	if out, err := w.fray(nil, "plan", "--detailed-exitcode").CombinedOutput(); err != nil {
		t.Errorf("point %s: the plan after is not empty: %v\n%s", point, err, out)
	}
}

type crashWorld struct {
	t   *testing.T
	dir string
}

func newCrashWorld(t *testing.T, dir string) *crashWorld {
	config := fmt.Sprintf(crashConfig, filepath.Join(dir, "starts"))
	if err := os.WriteFile(filepath.Join(dir, "fray.hcl"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return &crashWorld{t: t, dir: dir}
}

func (w *crashWorld) fray(env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), fray, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), append(env, "HOME="+w.dir, "XDG_CACHE_HOME="+filepath.Join(w.dir, "cache"), "NO_COLOR=1")...)
	return cmd
}

func (w *crashWorld) end() { endProcesses(w.dir) }

// picture is the world as far as it must be the same after every crash: job
// statuses, slices, how many agents live, and what was started.
func (w *crashWorld) picture(t *testing.T) string {
	var b strings.Builder
	out, err := w.fray(nil, "status").Output()
	if err != nil {
		t.Errorf("status: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[0], "job") {
			fmt.Fprintln(&b, f[0], f[1], f[2])
		}
	}
	slicesFound, err := filepath.Glob(filepath.Join(w.dir, ".fray", "local", "slices", "*"))
	if err != nil {
		t.Error(err)
	}
	fmt.Fprintln(&b, len(slicesFound), "slices")
	agents := 0
	for _, p := range processes(w.dir) {
		if strings.Contains(p.cmdline, " agent ") {
			agents++
		}
	}
	fmt.Fprintln(&b, agents, "agents")
	data, err := os.ReadFile(filepath.Join(w.dir, "starts"))
	if err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	slices.Sort(lines)
	if n := len(slices.Compact(slices.Clone(lines))); n != len(lines) {
		t.Errorf("%d tasks were started, but only %d different ones:\n%s", len(lines), n, data)
	}
	fmt.Fprintln(&b, len(lines), "starts")
	if len(lines) != crashStarts {
		t.Errorf("%d tasks were started, want %d", len(lines), crashStarts)
	}
	return b.String()
}
