package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cost is what one process took.
type cost struct {
	wall time.Duration
	cpu  time.Duration // processor time
	peak int64         // bytes of resident memory
}

// measure runs a command and takes the end of its output into its error.
func measure(cmd *exec.Cmd) (cost, error) {
	var said ending
	if cmd.Stdout == nil {
		cmd.Stdout = &said
	}
	cmd.Stderr = &said
	start := time.Now()
	err := cmd.Run()
	c := cost{wall: time.Since(start)}
	if err != nil {
		return c, fmt.Errorf("%v: %w\n%s", cmd.Args, err, tail(string(said)))
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.cpu = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		c.peak = usage.Maxrss * maxrssUnit
	}
	return c, nil
}

// ending keeps the end of what is written to it: all of it would count for the
// peak of the processes that follow.
type ending []byte

func (e *ending) Write(p []byte) (int, error) {
	*e = append(*e, p...)
	if extra := len(*e) - 4<<10; extra > 0 {
		*e = slices.Delete(*e, 0, extra)
	}
	return len(p), nil
}

func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// errLimit reports that a command took longer than it was given.
var errLimit = errors.New("time limit")

// limited runs a command in a process group of its own, which ends with ctx or
// after the limit, with all that it started. The error is then the cause.
func limited(ctx context.Context, limit time.Duration, prepare func(*exec.Cmd), command ...string) (cost, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	prepare(cmd)
	c, err := measure(cmd)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%v: %w", cmd.Args, context.Cause(ctx))
	}
	return c, err
}

// median is the middle of n measurements of a command.
func median(n int, make func() *exec.Cmd) (cost, error) {
	var all []cost
	for range n {
		c, err := measure(make())
		if err != nil {
			return c, err
		}
		all = append(all, c)
	}
	return middle(all), nil
}

func middle(all []cost) cost {
	slices.SortFunc(all, func(a, b cost) int { return int(a.wall - b.wall) })
	return all[len(all)/2]
}

func ms(d time.Duration) string  { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
func sec(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func mb(bytes int64) string      { return fmt.Sprintf("%d MB", bytes>>20) }
