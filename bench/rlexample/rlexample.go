// Package rlexample measures what the coordination of examples/nexrl.hcl takes. It leaves out printing.
package rlexample

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Steps is how many updates are made: as many as the example has by itself.
const Steps = 60

// Times are how long the updates take with their validations.
type Times struct {
	Run    time.Duration // of the example, with its coordination
	Alone  time.Duration // of a loop in one process that makes the answers itself
	Served time.Duration // of one that asks an inference server for them, as the run's workers do
}

// Bench is where to measure.
type Bench struct {
	Fray string // the program
	Root string // of the project
	Dir  string // for the runs
}

// Measure runs the example, and beside it the loops of the same mathematics.
func (b Bench) Measure(ctx context.Context) (Times, error) {
	for _, name := range []string{"examples", "library"} {
		if err := os.CopyFS(filepath.Join(b.Dir, name), os.DirFS(filepath.Join(b.Root, name))); err != nil {
			return Times{}, err
		}
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(b.Root, "scripts", "python-env")).CombinedOutput(); err != nil {
		return Times{}, fmt.Errorf("scripts/python-env: %w\n%s", err, out)
	}
	bin := filepath.Join(b.Root, "python", ".venv", "bin")
	env := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1")
	var found Times
	var err error
	if found.Alone, err = b.loop(ctx, env); err != nil {
		return Times{}, err
	}
	if found.Served, err = b.loop(ctx, env, "--served"); err != nil {
		return Times{}, err
	}
	found.Run, err = b.run(ctx, env)
	return found, err
}

// loop is how long the updates of a loop in one process take.
func (b Bench) loop(ctx context.Context, env []string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "python", append([]string{"single.py", strconv.Itoa(Steps)}, args...)...)
	cmd.Path = filepath.Join(b.Root, "python", ".venv", "bin", "python")
	cmd.Err = nil
	cmd.Dir, cmd.Env = filepath.Join(b.Dir, "examples", "nexrl"), env
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

// run is how long the example takes from its first validation to its last one.
func (b Bench) run(ctx context.Context, env []string) (took time.Duration, err error) {
	file := filepath.Join(b.Dir, "examples", "nexrl.hcl")
	fray := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, b.Fray, append(args, file)...)
		cmd.Dir, cmd.Env = b.Dir, env
		return cmd
	}
	if out, err := fray(ctx, "apply", "--auto-approve", "--var", fmt.Sprintf("steps=%d", Steps)).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("fray apply: %w\n%s", err, out)
	}
	defer func() {
		if out, problem := fray(context.WithoutCancel(ctx), "destroy", "--auto-approve").CombinedOutput(); problem != nil && err == nil {
			err = fmt.Errorf("fray destroy: %w\n%s", problem, out)
		}
	}()
	metrics := filepath.Join(b.Dir, "examples", "out", "nexrl", "metrics", "metrics.jsonl")
	deadline := time.Now().Add(10 * time.Minute)
	for time.Now().Before(deadline) {
		first, last, err := validations(metrics)
		if err != nil {
			return 0, err
		}
		if !last.IsZero() {
			return last.Sub(first), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return 0, errors.New("the run has not ended within 10 min")
}

// validations are when the validations before the first update and after the last one have ended, zero if they have not.
func validations(file string) (first, last time.Time, err error) {
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
		case Steps:
			last = record.Time
		}
	}
	return first, last, nil
}
