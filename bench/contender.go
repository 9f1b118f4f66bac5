package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// contender is a tool that is measured beside another.
type contender struct {
	name    string
	dialect dialect
	file    string // of the configuration
	state   string // its file
	repeat  int    // how often a plan is measured; the median counts
	run     func(v verb, dir string) (cost, result, error)
}

func (b sideBench) fraySimulated() contender {
	return contender{
		name: "ours", dialect: ours(b.opts.link), file: "fray.hcl", state: filepath.Join(".fray", "state.json"), repeat: 3,
		run: func(v verb, dir string) (cost, result, error) { return b.one(string(v), dir, string(b.opts.mail)) },
	}
}

// terraform is false where there is none.
func (b sideBench) terraform() (contender, bool) {
	program, err := exec.LookPath("terraform")
	if err != nil {
		return contender{}, false
	}
	return contender{
		name: "theirs", dialect: theirs(), file: "main.tf", state: "terraform.tfstate", repeat: 1,
		run: func(v verb, dir string) (cost, result, error) {
			c, err := limited(b.ctx, b.opts.limit, func(cmd *exec.Cmd) {
				cmd.Dir, cmd.Env = dir, terraformEnv()
			}, append([]string{program}, terraformArgs(v)...)...)
			return c, result{}, err
		},
	}, true
}

func terraformArgs(v verb) []string {
	args := []string{string(v), "-input=false", "-no-color"}
	switch v {
	case verbPlan:
	case verbAgain:
		args[0] = string(verbPlan)
	case verbApply, verbDestroy:
		args = append(args, "-auto-approve")
	}
	return args
}

// terraformEnv is without settings that others made, and without the question
// whether there is a newer version.
func terraformEnv() []string {
	env := []string{"CHECKPOINT_DISABLE=1"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TF_") {
			env = append(env, v)
		}
	}
	return env
}

// verdict states what is known of a command.
type verdict string

// The verdicts.
const (
	measured  verdict = "measured"
	overLimit verdict = "over the limit"
	notRun    verdict = "not run" // what it needs was not made
)

// cell is one command of a trial.
type cell struct {
	verdict verdict
	cost    cost
	result  result
}

// trial is one configuration: applied, planned again and destroyed.
type trial struct {
	shape shape
	n     int
	cells map[verb]cell
	state int64 // bytes, after apply
}

// verbs in the order in which a trial runs them.
func verbs() []verb { return []verb{verbPlan, verbApply, verbAgain, verbDestroy} }

// slow remembers which commands took too long; at a larger size they are not
// tried again.
type slow map[string]bool

func slowKey(c contender, s shape, v verb) string { return fmt.Sprint(c.name, " ", s, " ", v) }

// try runs all commands on n resources in a shape.
func (b sideBench) try(c contender, s shape, n int, over slow) (trial, error) {
	t := trial{shape: s, n: n, cells: map[verb]cell{}}
	dir, err := os.MkdirTemp(b.dir, "trial-")
	if err != nil {
		return t, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.dialect.config(s, n)), 0o600); err != nil {
		return t, err
	}
	for _, v := range verbs() {
		switch {
		case over[slowKey(c, s, v)], v == verbApply && t.cells[verbPlan].verdict == overLimit: // it plans first
			t.cells[v] = cell{verdict: overLimit}
			continue
		case (v == verbAgain || v == verbDestroy) && t.cells[verbApply].verdict != measured:
			t.cells[v] = cell{verdict: notRun}
			continue
		}
		fmt.Fprintf(b.log, "%s  %s: %s, N = %d: %s\n", time.Now().Format(time.TimeOnly), c.name, s, n, v)
		got, err := b.cell(c, v, dir)
		if err != nil {
			return t, fmt.Errorf("%s: %s of %d resources, %s: %w", c.name, v, n, s, err)
		}
		t.cells[v] = got
		over[slowKey(c, s, v)] = got.verdict == overLimit
		if info, err := os.Stat(filepath.Join(dir, c.state)); err == nil && v == verbApply && got.verdict == measured {
			t.state = info.Size()
		}
	}
	return t, nil
}

// cell measures one command.
func (b sideBench) cell(c contender, v verb, dir string) (cell, error) {
	repeat := 1
	if v == verbPlan || v == verbAgain {
		repeat = c.repeat
	}
	got := cell{verdict: measured}
	var costs []cost
	for range repeat {
		took, r, err := c.run(v, dir)
		if errors.Is(err, errLimit) {
			return cell{verdict: overLimit}, nil
		}
		if err != nil {
			return got, err
		}
		costs, got.result = append(costs, took), r
	}
	got.cost = middle(costs)
	return got, nil
}
