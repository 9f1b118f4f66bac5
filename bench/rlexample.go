package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// rlSteps is how many updates the runs of the example make: as many as the example has by itself.
const rlSteps = 60

// rlExample measures what the coordination of examples/nexrl.hcl takes, beside loops of the same mathematics in one
// process: one that makes the answers itself, and one that asks an inference server for them, as the run's workers do.
func (b *bench) rlExample() error {
	dir := filepath.Join(b.dir, "rlexample")
	for _, name := range []string{"examples", "library"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(b.root, name))); err != nil {
			return err
		}
	}
	bin := filepath.Join(b.root, "python", ".venv", "bin")
	if out, err := exec.CommandContext(b.ctx, filepath.Join(b.root, "scripts", "python-env")).CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/python-env: %w\n%s", err, out)
	}
	env := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1")
	alone, err := b.rlLoop(dir, env)
	if err != nil {
		return err
	}
	served, err := b.rlLoop(dir, env, "--served")
	if err != nil {
		return err
	}
	run, err := b.rlRun(dir, env)
	if err != nil {
		return err
	}
	part := func(loop time.Duration) string { return fmt.Sprintf("%.0f %%", 100*(1-loop.Seconds()/run.Seconds())) }
	b.row(fmt.Sprintf("RL example, %d updates with validations", rlSteps), sec(run), "< 2 min", "one process: "+sec(alone)+"; one that asks an inference server: "+sec(served))
	b.row("RL example: part of its time beyond the loop that asks an inference server", part(served), "< 10 %", "beyond the loop without one: "+part(alone))
	return nil
}

// rlLoop is how long the updates of a loop in one process take.
func (b *bench) rlLoop(dir string, env []string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(b.ctx, "python", append([]string{"single.py", strconv.Itoa(rlSteps)}, args...)...)
	cmd.Path = filepath.Join(b.root, "python", ".venv", "bin", "python")
	cmd.Err = nil
	cmd.Dir, cmd.Env = filepath.Join(dir, "examples", "nexrl"), env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("single.py %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	found := regexp.MustCompile(`(?m)^\d+ steps in ([0-9.]+) s$`).FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("single.py has not printed how long it took:\n%s", out)
	}
	seconds, err := strconv.ParseFloat(string(found[1]), 64)
	return time.Duration(seconds * float64(time.Second)), err
}

// rlRun is how long the example takes from its first validation to its last one.
func (b *bench) rlRun(dir string, env []string) (took time.Duration, err error) {
	file := filepath.Join(dir, "examples", "nexrl.hcl")
	fray := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, b.fray, append(args, file)...)
		cmd.Dir, cmd.Env = dir, env
		return cmd
	}
	if out, err := fray(b.ctx, "apply", "--auto-approve", "--var", fmt.Sprintf("steps=%d", rlSteps)).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("fray apply: %w\n%s", err, out)
	}
	watch := fray(b.ctx, "watch", "--http", "off")
	watch.Cancel = func() error { return watch.Process.Signal(os.Interrupt) }
	watch.WaitDelay = time.Minute
	var log bytes.Buffer
	watch.Stdout, watch.Stderr = &log, &log
	if err := watch.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = watch.Process.Signal(os.Interrupt)
		_ = watch.Wait()
		if out, problem := fray(context.WithoutCancel(b.ctx), "destroy", "--auto-approve").CombinedOutput(); problem != nil && err == nil {
			err = fmt.Errorf("fray destroy: %w\n%s", problem, out)
		}
	}()
	metrics := filepath.Join(dir, "examples", "out", "nexrl", "metrics", "metrics.jsonl")
	deadline := time.Now().Add(10 * time.Minute)
	for time.Now().Before(deadline) {
		first, last, err := rlValidations(metrics)
		if err != nil {
			return 0, err
		}
		if !last.IsZero() {
			return last.Sub(first), nil
		}
		select {
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return 0, fmt.Errorf("the run has not ended within 10 min; its watch logs\n%s", &log)
}

// rlValidations are when the validations before the first update and after the last one have ended, zero if they have not.
func rlValidations(file string) (first, last time.Time, err error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return first, last, nil
	}
	if err != nil {
		return first, last, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(whole) {
		var record struct {
			Time time.Time                  `json:"time"`
			Step int64                      `json:"step"`
			Data map[string]json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			return first, last, fmt.Errorf("%s: %w", file, err)
		}
		if _, ok := record.Data["val/exact_match"]; !ok {
			continue
		}
		switch record.Step {
		case 0:
			first = record.Time
		case rlSteps:
			last = record.Time
		}
	}
	return first, last, nil
}
