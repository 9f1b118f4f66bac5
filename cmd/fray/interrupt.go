package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns two contexts: the first Ctrl-C (or SIGTERM) ends soft,
// after which no new work is begun; the second ends hard, after which nothing
// is waited for. verb is what picks up afterwards.
func (a *app) interruptible(ctx context.Context, verb string) (soft, hard context.Context, stop func()) {
	return a.interruptibleAs(ctx, "Interrupted: starting nothing new, finishing what is under way, saving. Again to leave at once.",
		"Leaving at once. The next fray "+verb+" picks up from what it finds.")
}

// interruptibleAs is interruptible with what is said at the first Ctrl-C and at
// the second.
func (a *app) interruptibleAs(ctx context.Context, first, second string) (soft, hard context.Context, stop func()) {
	hard, endHard := context.WithCancel(ctx)
	soft, endSoft := context.WithCancel(hard)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-signals:
			fmt.Fprintln(a.stderr, "\n"+first)
			endSoft()
		}
		select {
		case <-done:
		case <-signals:
			fmt.Fprintln(a.stderr, "\n"+second)
			endHard()
		}
	}()
	return soft, hard, func() {
		signal.Stop(signals)
		close(done)
		endSoft()
		endHard()
	}
}
