package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/state/store"
)

func watchCommand(a *app) *cobra.Command {
	var config configFlags
	var parallelism int
	var detached bool
	cmd := &cobra.Command{
		Use:   "watch [DIR | FILE...]",
		Short: "Keep what was applied true until stopped",
		Long: `Keep what was applied true: tasks, hosts and slices that die come back within
their budgets. watch carries out what the last apply accepted and never reads
the files, so an edit changes nothing before it is applied. A fray apply beside
it gets the lease for as long as it needs.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), args, config)
			if err != nil {
				return err
			}
			if err := l.stack.here(l.doc); err != nil {
				return err
			}
			all, err := l.stack.providers(cmd.Context(), nil, l.doc)
			if err != nil {
				return err
			}
			soft, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			cfg := controller.Config{
				Store: l.stack.store, Providers: all, Version: toolVersion(), Command: "fray watch",
				Parallelism: parallelism, UntilUndeclared: detached,
				Log: slog.New(slog.NewTextHandler(a.stderr, nil)),
			}
			if !detached {
				p := newProgress(a)
				defer p.close()
				cfg.Notify = p.step
				cfg.Log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
				fmt.Fprintf(a.stderr, "Watching the stack in %s. Ctrl-C ends the watch, not the jobs.\n", l.stack.store.Location())
			}
			if lease, ok := l.stack.watch(soft); ok {
				fmt.Fprintf(a.stderr, "pid %d on %s watches this stack already; waiting to take over.\n", lease.PID, lease.Host)
			}
			return controller.Run(soft, cfg)
		},
	}
	config.register(cmd)
	cmd.Flags().IntVar(&parallelism, "parallelism", 32, "at most `N` operations at once")
	cmd.Flags().BoolVar(&detached, "detached", false, "end when the accepted configuration declares no controller")
	_ = cmd.Flags().MarkHidden("detached")
	return cmd
}

// startController starts a detached `fray watch` unless one leads already. Its
// output goes to watch.log in the stack's directory.
func (r *runner) startController() error {
	s := r.l.stack
	if _, ok := s.watch(context.Background()); ok || r.watched {
		return nil
	}
	logPath := filepath.Join(s.root, "watch.log")
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	defer func() { _ = out.Close() }()
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	args := []string{"watch", "--detached", "--workspace=" + s.workspace}
	if r.l.opts.Local {
		args = append(args, "--local")
	}
	for _, path := range r.l.paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("start controller: %w", err)
		}
		args = append(args, abs)
	}
	cmd := exec.Command(executable, args...)
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	fmt.Fprintf(r.app.stderr, "\nA controller (pid %d) keeps it true from here on; it logs to %s.\n", cmd.Process.Pid, logPath)
	return cmd.Process.Release()
}

// watch is the lease of the `fray watch` that holds it, false if none does.
func (s *stack) watch(ctx context.Context) (store.Lease, bool) {
	lease, err := store.ReadLease(ctx, s.store)
	return lease, err == nil && lease.Yields && leads(lease, time.Now())
}

// leads reports whether somebody holds a lease: it is live, and its process has
// not died on this very machine.
func leads(lease store.Lease, now time.Time) bool {
	if !lease.Live(now) {
		return false
	}
	host, err := os.Hostname()
	here := err == nil && host == lease.Host
	return !here || !errors.Is(syscall.Kill(lease.PID, 0), syscall.ESRCH)
}
