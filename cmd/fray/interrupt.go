package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// finishingSoftly is what a change says at the first Ctrl-C.
const finishingSoftly = "Interrupted: starting nothing new, finishing what is under way, saving. Again to leave at once."

// leavingAtOnce is what it says at the second, with the verb that picks up.
func leavingAtOnce(verb string) string {
	return "Leaving at once. The next fray " + verb + " picks up from what it finds."
}

// interruptibleAs returns two contexts: the first Ctrl-C (or SIGTERM) ends soft,
// after which no new work is begun; the second ends hard, after which nothing
// is waited for. first and second are said then.
func (a *app) interruptibleAs(ctx context.Context, first func() string, second string) (soft, hard context.Context, stop func()) {
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
			fmt.Fprintln(a.stderr, "\n"+first())
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

// interrupted is what is said at the first Ctrl-C.
func (r *runner) interrupted() string {
	if r.handedOver.Load() {
		return "Interrupted: leaving the change to the controller."
	}
	return finishingSoftly
}
