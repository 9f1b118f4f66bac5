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

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// watchFlags are the flags of watch.
type watchFlags struct {
	configFlags
	parallelism int
	detached    bool
	config      string
	observe     bool
	api         string
	advertise   string
	http        string
}

// Where a watch serves unless it is told otherwise.
const (
	httpDefault = "127.0.0.1:8642"
	serveAuto   = "auto"
	serveOff    = "off"
)

// watchObserves is the command in the lease of a watch that changes nothing.
const watchObserves = "fray watch --observe"

func watchCommand(a *app) *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "watch [DIR | FILE...]",
		Short: "Keep what was applied true until stopped",
		Long: `Keep what was applied true: tasks, hosts and slices that die come back within
their budgets. watch is also the stack's controller: programs launch jobs and find
each other through it, and it serves a web page and metrics.

It carries out what the last apply accepted, and reads no files, so that an edit
changes nothing before it is applied: a fray apply hands its plan over and follows.
With --config it follows a directory, or a branch or tag of a repository, instead,
and takes over what changes there. With --observe it changes nothing and only shows
what it finds.

Of several watches of one stack one leads; another one takes over within seconds of
its death, and what runs does not notice.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args, flags) },
	}
	flags.register(cmd)
	cmd.Flags().IntVar(&flags.parallelism, "parallelism", 32, "at most `N` operations at once")
	cmd.Flags().BoolVar(&flags.detached, "detached", false, "end when the accepted configuration declares no controller")
	_ = cmd.Flags().MarkHidden("detached")
	cmd.Flags().StringVar(&flags.config, "config", "", "follow the files in a `DIR`, or in \"git URL@REF\", without an apply")
	cmd.Flags().BoolVar(&flags.observe, "observe", false, "show what differs and change nothing")
	cmd.Flags().StringVar(&flags.api, "api", serveAuto, "serve the cluster API at `HOST:PORT`; auto: on this machine, or in its network if the state is in a bucket; off: not at all")
	cmd.Flags().StringVar(&flags.advertise, "advertise", "", "the `HOST` by which others reach --api")
	cmd.Flags().StringVar(&flags.http, "http", httpDefault, "serve the web page and metrics at `HOST:PORT`; off: not at all")
	return cmd
}

func (a *app) watch(ctx context.Context, args []string, flags watchFlags) error {
	soft, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var files *followed
	if flags.config != "" {
		var err error
		if files, err = a.followedFiles(soft, flags.config, flags.configFlags); err != nil {
			return err
		}
		if len(args) > 0 {
			return errors.New("--config says where the files are; leave the other paths out")
		}
		args = []string{files.dir}
	}
	l, err := a.locateOrBegin(soft, args, flags.configFlags)
	if err != nil {
		return err
	}
	if err := l.stack.here(l.doc); err != nil {
		return err
	}
	var declared []schema.Provider
	if files != nil {
		if err := files.look(soft); err != nil {
			return err
		}
		declared = files.providers
		go files.run(soft)
	}
	all, err := l.stack.providers(soft, declared, l.doc)
	if err != nil {
		return err
	}
	cfg := controller.Config{
		Store: l.stack.store, Providers: all, Version: toolVersion(), Command: "fray watch",
		Parallelism: flags.parallelism, UntilUndeclared: flags.detached, Observe: flags.observe,
		Log: slog.New(slog.NewTextHandler(a.stderr, nil)),
	}
	if cfg.Service, err = l.stack.service(ctx, l.doc, flags); err != nil {
		return err
	}
	sealer, err := l.stack.sealer(soft, l.doc, false)
	if err != nil {
		return err
	}
	cfg.Recorded = l.stack.opener(sealer)
	cfg.Leading = func(ctx context.Context, lease *store.Held) error {
		l.stack.keys.refresh()
		if err := l.stack.finishRekey(ctx, apply.Rewriter{Store: l.stack.store, Version: toolVersion(), Epoch: lease.Epoch(), Valid: lease.Valid}); err != nil {
			return err
		}
		return files.rekeyed(ctx)
	}
	if flags.observe {
		cfg.Command = watchObserves
	}
	if files != nil {
		cfg.Proposal = files.latest.Load
	}
	if !flags.detached {
		p := newProgress(a)
		p.drifts = map[plan.Drift]bool{}
		defer p.close()
		cfg.Notify = p.step
		cfg.Log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		fmt.Fprintf(a.stderr, "Watching the stack in %s. Ctrl-C ends the watch, not the jobs.\n", l.stack.store.Location())
		cfg.Serving = func(http string) {
			if http != "" {
				p.line("Page and metrics: %s", http)
			}
		}
	}
	if lease, ok := l.stack.watch(soft); ok {
		fmt.Fprintf(a.stderr, "pid %d on %s watches this stack already; waiting to take over.\n", lease.PID, lease.Host)
	}
	return controller.Run(soft, cfg)
}

// locateOrBegin finds the stack of a configuration. One that was never applied
// is begun, with nothing in it: programs may launch what is to run there.
func (a *app) locateOrBegin(ctx context.Context, args []string, flags configFlags) (*loaded, error) {
	l, err := a.locate(ctx, args, flags)
	if !errors.Is(err, errNoState) {
		return l, err
	}
	if l, err = a.load(ctx, args, flags, true); err != nil {
		return nil, err
	}
	if len(l.cfg.Ranges) == 0 && len(l.src.Files()) == 0 {
		return nil, errNoState
	}
	// A first apply that comes at the same time waits for it, and goes first else.
	begin := func(ctx context.Context, w apply.Rewriter) error {
		_, err := w.Edit(ctx, func(doc *state.Document) (*state.Document, error) {
			next := doc.Clone()
			next.LocalPlace = l.stack.place()
			return next, nil
		})
		return err
	}
	if err := a.underLease(ctx, l.stack, store.LeaseConfig{Wait: time.Minute, Yields: true}, begin); err != nil {
		return nil, err
	}
	return a.locate(ctx, args, flags)
}

// service is what a watch serves, as its flags say.
func (s *stack) service(ctx context.Context, doc *state.Document, flags watchFlags) (controller.Service, error) {
	served := controller.Service{API: flags.api, Advertise: flags.advertise, HTTP: flags.http, Stack: doc.Stack()}
	if served.HTTP == serveOff || flags.detached && flags.http == httpDefault {
		served.HTTP = ""
	}
	switch served.API {
	case serveOff:
		served.API = ""
		return served, nil
	case serveAuto:
		served.API = "127.0.0.1:0"
		if s.store.WriteInterval() > 0 { // hosts elsewhere have to reach it
			served.API = ":0"
		}
	}
	var err error
	served.Sealer, err = s.sealer(ctx, doc, true)
	return served, err
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
	sight, err := s.clock.Look(ctx)
	return sight.Lease, err == nil && sight.Lease.Yields && leads(sight)
}

// leads reports whether somebody holds the lease: it is live, and its process has
// not died on this very machine.
func leads(sight store.Sight) bool { return sight.Leads && !sight.Lease.Gone() }
