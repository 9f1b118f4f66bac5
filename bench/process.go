package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fray-ml/fray/bench/rlexample"
	"github.com/fray-ml/fray/bench/scale"
	"github.com/fray-ml/fray/bench/storebill"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// startup times the smallest command beside the smallest program there is.
func (b *bench) startup() error {
	ours, err := median(41, func() *exec.Cmd { return b.command(b.dir, "version") })
	if err != nil {
		return err
	}
	least, err := median(41, func() *exec.Cmd { return exec.CommandContext(b.ctx, "true") })
	if err != nil {
		return err
	}
	beside := fmt.Sprintf("true(1): %s", ms(least.wall))
	if path, err := exec.LookPath("terraform"); err == nil {
		theirs, err := median(5, func() *exec.Cmd {
			cmd := exec.CommandContext(b.ctx, path, "version")
			cmd.Dir = b.dir
			cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1")
			return cmd
		})
		if err == nil {
			beside += fmt.Sprintf(", terraform version: %s (%.0fx)", ms(theirs.wall), float64(theirs.wall)/float64(ours.wall))
		}
	}
	b.row("fray version, median of 41", ms(ours.wall), "< 20 ms", beside)
	return nil
}

// storeRequests counts what a stack asks of its bucket.
func (b *bench) storeRequests() error {
	counts, err := storebill.Bench{Fray: b.fray, Dir: filepath.Join(b.dir, "store")}.Measure(b.ctx)
	if err != nil {
		return err
	}
	for i, c := range counts {
		target := ""
		if i == 0 {
			target = "< 70 writes, < 5 reads"
		}
		b.row("requests per host-hour, "+c.Name, fmt.Sprintf("%.0f writes, %.0f lists, %.0f reads", c.Writes, c.Lists, c.Reads), target,
			fmt.Sprintf("%d hosts for %s; $%.4f at list prices", storebill.Hosts, sec(c.Took), c.Dollars()))
	}
	return nil
}

// rlExample measures what the coordination of a reinforcement learning run takes.
func (b *bench) rlExample() error {
	took, err := rlexample.Bench{Fray: b.fray, Root: b.root, Dir: filepath.Join(b.dir, "rlexample")}.Measure(b.ctx)
	if err != nil {
		return err
	}
	beyond := func(loop time.Duration) string {
		return fmt.Sprintf("%.0f %%", 100*(1-loop.Seconds()/took.Run.Seconds()))
	}
	b.row(fmt.Sprintf("RL example, %d updates with validations", rlexample.Steps), sec(took.Run), "< 2 min",
		"one process: "+sec(took.Alone)+"; one that asks an inference server: "+sec(took.Served))
	b.row("RL example: part of its time beyond the loop that asks an inference server", beyond(took.Served), "< 10 %",
		"beyond the loop without one: "+beyond(took.Alone))
	return nil
}

// quickstart applies the example; every task has run by the time apply returns.
func (b *bench) quickstart() error {
	var all []time.Duration
	for i := range 5 {
		dir := filepath.Join(b.dir, fmt.Sprintf("quickstart-%d", i))
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(b.root, "examples"))); err != nil {
			return err
		}
		file := filepath.Join(dir, "quickstart.hcl")
		start := time.Now()
		apply := b.command(dir, "apply", "--auto-approve", file)
		if err := apply.Start(); err != nil {
			return err
		}
		seen, err := b.allStarted(filepath.Join(dir, ".fray", "quickstart"), 5)
		if err != nil {
			return err
		}
		all = append(all, seen.Sub(start))
		if err := apply.Wait(); err != nil {
			return err
		}
		if out, err := b.command(dir, "destroy", "--auto-approve", file).CombinedOutput(); err != nil {
			return fmt.Errorf("destroy: %w\n%s", err, out)
		}
	}
	slices.Sort(all)
	b.row("quickstart: command to all 5 tasks started, median of 5", sec(all[2]), "< 1 s", "")
	return nil
}

// allStarted waits until n jobs have reported a start, by the hosts' own
// reports, and returns when the last one started.
func (b *bench) allStarted(root string, n int) (time.Time, error) {
	deadline := time.Now().Add(30 * time.Second)
	started := map[string]time.Time{}
	for time.Now().Before(deadline) {
		for _, r := range reports(root) {
			if r.Task != nil && r.Task.Started {
				started[r.Task.Job.String()] = r.Task.StartedAt
			}
		}
		if len(started) >= n {
			var last time.Time
			for _, t := range started {
				if t.After(last) {
					last = t
				}
			}
			return last, nil
		}
		sleep.For(b.ctx, 2*time.Millisecond)
	}
	return time.Time{}, fmt.Errorf("only %d of %d tasks started", len(started), n)
}

func reports(root string) []state.HostReport {
	files, _ := filepath.Glob(filepath.Join(root, "hosts", "*", "*.json"))
	var out []state.HostReport
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		var r state.HostReport
		if json.Unmarshal(data, &r) == nil {
			out = append(out, r)
		}
	}
	return out
}

// plans measures plans from nothing, in one process each.
func (b *bench) plans() error {
	type size struct {
		n      int
		target string
	}
	var first cost
	for i, s := range []size{{10_000, "< 1 s, < 300 MB"}, {100_000, "< 12 s, near-linear"}} {
		dir, err := b.scratch(fmt.Sprintf("plan-%d", s.n), fmt.Sprintf(`
job "work" {
  count   = %d
  command = ["python", "-m", "work", "--shard=${count.index}"]
  resources {
    tpu = "v5litepod-4"
  }
  environment {
    env = { SHARD = tostring(count.index) }
  }
}
`, s.n))
		if err != nil {
			return err
		}
		// The program named must be there for plan to accept it.
		if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "bin", "python"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			return err
		}
		c, err := median(3, func() *exec.Cmd {
			cmd := b.command(dir, "plan")
			cmd.Env = append(cmd.Env, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			return cmd
		})
		if err != nil {
			return err
		}
		beside := ""
		if i == 0 {
			first = c
		} else {
			beside = fmt.Sprintf("%.1fx the time of a tenth", float64(c.wall)/float64(first.wall))
		}
		b.row(fmt.Sprintf("plan of %d tasks, median of 3", s.n), fmt.Sprintf("%s, %d MB", sec(c.wall), c.peak>>20), s.target, beside)
	}
	return nil
}

// recoveries kills a task, an agent and a host under watch, and measures how long each takes to run again.
func (b *bench) recoveries() error {
	dir, err := b.applied("recovery", `
job "one" {
  command = ["sh", "-c", "while :; do sleep 1000; done"]
  retries {
    failure = -1
  }
}
`)
	if err != nil {
		return err
	}
	watch := b.command(dir, "watch")
	if err := watch.Start(); err != nil {
		return err
	}
	defer func() {
		_ = watch.Process.Signal(syscall.SIGTERM)
		_ = watch.Wait()
		_ = b.command(dir, "destroy", "--auto-approve").Run()
	}()
	sleep.For(b.ctx, 2*time.Second) // into its quiet pace
	for _, what := range []string{"task", "agent", "host"} {
		var all []time.Duration
		var waited time.Duration
		for range 3 {
			took, backoff, err := b.recover(dir, what)
			if err != nil {
				return err
			}
			waited = max(waited, backoff)
			all = append(all, took-backoff)
			sleep.For(b.ctx, 1500*time.Millisecond)
		}
		slices.Sort(all)
		beside := "no backoff"
		if waited > 0 {
			beside = fmt.Sprintf("beside a backoff of up to %s", waited)
		}
		b.row(fmt.Sprintf("watch: kill -9 of a %s to running again, worst of 3", what), sec(all[2]), "< 2 s", beside)
	}
	return nil
}

// recover kills and returns how long it took until the job ran again, and the
// backoff in that.
func (b *bench) recover(dir, what string) (took, backoff time.Duration, err error) {
	before := running(dir)
	if before == nil {
		return 0, 0, fmt.Errorf("the job does not run")
	}
	start := time.Now()
	killWhat(before, what)
	deadline := start.Add(60 * time.Second)
	for time.Now().Before(deadline) {
		now := running(dir)
		again := now != nil && now.Boot != before.Boot
		if what == "task" {
			again = now != nil && now.Task.Attempt > before.Task.Attempt
		}
		if what == "host" {
			again = again && now.Task.Attempt > before.Task.Attempt
		}
		if again && now.Task.Attempt == before.Task.Attempt {
			return time.Since(start), 0, nil
		}
		if again {
			took := time.Since(start)
			return took, b.backoff(dir, now.Task.Attempt), nil
		}
		sleep.For(b.ctx, 5*time.Millisecond)
	}
	return 0, 0, fmt.Errorf("killed %s did not come back", what)
}

// backoff is the pause that the policy put before an attempt, from the record.
func (b *bench) backoff(dir string, attempt int) time.Duration {
	out, err := b.command(dir, "status", "--json").Output()
	if err != nil {
		return 0
	}
	var status struct {
		Jobs []struct {
			Attempts []struct {
				Number    int
				Outcome   schema.TaskState
				EndedAt   time.Time `json:"ended_at"`
				StartedAt time.Time `json:"started_at"`
			}
		}
	}
	if json.Unmarshal(out, &status) != nil {
		return 0
	}
	var ended time.Time
	for _, j := range status.Jobs {
		for _, a := range j.Attempts {
			if a.Number == attempt-1 {
				ended = a.EndedAt
			}
			if a.Number == attempt && !ended.IsZero() {
				return a.StartedAt.Sub(ended).Truncate(time.Second)
			}
		}
	}
	return 0
}

func running(dir string) *state.HostReport {
	for _, r := range reports(filepath.Join(dir, ".fray")) {
		if r.Task != nil && r.Task.State == schema.TaskRunning {
			return &r
		}
	}
	return nil
}

func killWhat(r *state.HostReport, what string) {
	if what != "task" {
		_ = syscall.Kill(r.PID, syscall.SIGKILL)
	}
	if what == "host" { // with all that it runs, the task's shim first
		if shim := parentOf(r.Task.PID); shim > 1 {
			_ = syscall.Kill(shim, syscall.SIGKILL)
		}
	}
	if what != "agent" {
		_ = syscall.Kill(-r.Task.PID, syscall.SIGKILL)
	}
}

// parentOf is a process's parent, 0 where /proc does not have it.
func parentOf(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	if f := strings.Fields(rest); len(f) > 1 {
		n, _ := strconv.Atoi(f[1])
		return n
	}
	return 0
}

// What is measured at each number of hosts.
const (
	scaleDeaths = 30
	scaleQuiet  = time.Minute
	scaleSettle = 15 * time.Second
)

// scaled measures a controller over many simulated hosts.
func (b *bench) scaled() error {
	var first scale.Result
	for i, n := range b.opts.hosts {
		r, err := scale.Bench{
			Slices: n / scale.Hosts, Deaths: scaleDeaths, Quiet: scaleQuiet, Settle: scaleSettle, Profiles: b.opts.profiles, Log: b.log,
			Start: func(ctx context.Context, url string) *exec.Cmd {
				cmd := exec.CommandContext(ctx, b.self, oneArg, oneScale, url, b.opts.profiles)
				cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST=")
				return cmd
			},
			Bucket: func(ctx context.Context) *exec.Cmd {
				return exec.CommandContext(ctx, b.self, oneArg, oneBucket, "", "")
			},
		}.Measure(b.ctx)
		if err != nil {
			return fmt.Errorf("%d hosts: %w", n, err)
		}
		rows := r.Rows(maxrssUnit)
		if i == 0 {
			first = r
		} else {
			rows = append(rows, r.Growth(first))
		}
		for _, row := range rows {
			b.row(row...)
		}
		if err := b.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}
