package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// engineJobs is how many jobs that do nothing are started, of each library, where
// FRAY_BENCH_JOBS does not say otherwise.
const engineJobs = 1000

// engineBench measures fray's clients of other people's clusters, each beside the
// engine's own way in the same run.
type engineBench struct{ actorBench }

// engines measures jobs and actors on a Ray cluster of this machine.
func (b engineBench) engines() error {
	python, err := b.engine("ray")
	if err != nil {
		return err
	}
	count := engineJobs
	if given := os.Getenv("FRAY_BENCH_JOBS"); given != "" {
		if count, err = strconv.Atoi(given); err != nil {
			return fmt.Errorf("FRAY_BENCH_JOBS: %w", err)
		}
	}
	jobs, err := b.onEngine(python, "ray_jobs.py", strconv.Itoa(count))
	if err != nil {
		return err
	}
	actors, err := b.onEngine(python, "on_ray.py")
	if err != nil {
		return err
	}
	for _, row := range engineRows(count) {
		rows := jobs
		if row.actors {
			rows = actors
		}
		ours, theirs := rows[row.name+", fray"], rows[row.name+", ray"]
		if ours == 0 || theirs == 0 {
			return fmt.Errorf("%s was not measured", row.name)
		}
		b.row("on Ray: "+row.text, row.measured(rows, "fray"), row.target, fmt.Sprintf("Ray %s: %.2f times", row.measured(rows, "ray"), ours/theirs))
	}
	return nil
}

// engineRow is one measurement of both, by the name that the programs give it.
type engineRow struct {
	name, text, target string
	actors             bool // of on_ray.py, or else of ray_jobs.py
	format             func(float64) string
}

// measured is the median of one library, with the quartiles where its program
// has them.
func (r engineRow) measured(rows map[string]float64, library string) string {
	text := r.format(rows[r.name+", "+library])
	low, high := rows[r.name+" first quartile, "+library], rows[r.name+" third quartile, "+library]
	if low == 0 && high == 0 {
		return text
	}
	return fmt.Sprintf("%s (%s to %s)", text, r.format(low), r.format(high))
}

func engineRows(jobs int) []engineRow {
	return []engineRow{
		{"submit to start p50", "submission of a callable to its start, p50", "1.5 times a task in a fresh process", false, secondsText},
		{"jobs that do nothing", fmt.Sprintf("%d jobs that do nothing", jobs), "3 times tasks in processes of their own", false, secondsText},
		{"create and first call", "create_actor and the first call", "1.2 times a named, detached actor", true, secondsText},
		{"1:1 sync", "calls through our handle, 1:1 sync", "1 times", true, rateText},
		{"1:1 async", "calls through our handle, 1:1 async", "1 times", true, rateText},
		{"n:n async", "calls through our handle, n:n async", "1 times", true, rateText},
	}
}

func secondsText(s float64) string { return ms(time.Duration(s * float64(time.Second))) }

func rateText(r float64) string { return fmt.Sprintf("%.0f/s", r) }

// onEngine runs a program of bench/actors with this package and the engine's, and
// takes what it measured.
func (b engineBench) onEngine(python, program string, args ...string) (map[string]float64, error) {
	command := []string{"env", "PYTHONPATH=" + filepath.Join(b.root, "python", "src"), python, filepath.Join(b.root, "bench", "actors", program)}
	return b.tellings(append(command, args...)...)
}

// engine installs an engine for this run, at the versions of its tests.
func (b engineBench) engine(name string) (string, error) {
	dir := filepath.Join(b.dir, "engine-"+name)
	uv := filepath.Join(b.root, ".tools", "bin", "uv")
	python := filepath.Join(dir, "bin", "python")
	pins := filepath.Join(b.root, "python", "tests", "engines", name, "requirements-3.11.txt")
	for _, command := range [][]string{
		{filepath.Join(b.root, "scripts", "tools"), "uv"},
		{uv, "venv", "--quiet", "--python", "3.11", dir},
		{uv, "pip", "install", "--quiet", "--compile-bytecode", "--no-deps", "--python", python, "--requirement", pins},
	} {
		cmd := exec.CommandContext(b.ctx, command[0], command[1:]...)
		cmd.Stdout, cmd.Stderr = b.log, b.log
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("install %s: %v: %w", name, command, err)
		}
	}
	return python, nil
}
