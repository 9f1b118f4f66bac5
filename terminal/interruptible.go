package terminal

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Interrupted is how a command ends that was interrupted before it did anything.
func Interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &Exit{Code: ExitInterrupted, Msg: "interrupted; nothing was done"}
}

// Interruptible returns two contexts: the first Ctrl-C (or SIGTERM) ends soft,
// after which no new work is begun; the second ends hard, after which nothing
// is waited for. first and second are printed then.
func (a *Terminal) Interruptible(ctx context.Context, first func() string, second string) (soft, hard context.Context, stop func()) {
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
			fmt.Fprintln(a.Stderr, "\n"+first())
			endSoft()
		}
		select {
		case <-done:
		case <-signals:
			fmt.Fprintln(a.Stderr, "\n"+second)
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
