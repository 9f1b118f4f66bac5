package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/controller/loop"
	"github.com/fray-ml/fray/gitops"
	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// Options are the flags of watch.
type Options struct {
	configuration.Options
	Policies    policies.Options
	Parallelism int
	Detached    bool
	Config      string
	Forge       gitops.Options // where the statuses of followed commits are reported
	Observe     bool
	API         string
	Advertise   string
	HTTP        string
	// Page says that the parent has passed the listener of the page on, and recorded its token.
	Page bool
}

// Where a watch serves by default.
const (
	HTTPDefault = "127.0.0.1:8642"
	ServeAuto   = "auto"
	serveOff    = "off"
)

// Run is a controller until ctx or a signal ends it.
func Run(ctx context.Context, a *terminal.Terminal, args []string, flags Options) error {
	soft, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var files *followed
	if flags.Config != "" {
		var err error
		if files, err = newFollowed(soft, a, flags); err != nil {
			return err
		}
		if len(args) > 0 {
			return errors.New("--config names the files; omit the other paths")
		}
		args = []string{files.dir}
	}
	flags.Changes = !flags.Observe
	l, err := locateOrBegin(soft, a, args, flags.Options)
	if err != nil {
		return err
	}
	if err := l.Stack.CheckHere(l.Document); err != nil {
		return err
	}
	var declared []schema.Provider
	if files != nil {
		go files.reporter.Run(soft)
		if err := files.read(soft); err != nil {
			return err
		}
		declared = files.providers
		go files.run(soft)
	}
	all, err := l.Stack.Providers(soft, declared, l.Document)
	if err != nil {
		return err
	}
	cfg, err := configured(soft, a, l, flags, files)
	if err != nil {
		return err
	}
	cfg.Providers = all
	if !flags.Detached {
		p := attended(&cfg, a, l.Stack)
		defer p.Close()
	}
	if lease, ok := l.Stack.WatchLease(soft); ok {
		fmt.Fprintf(a.Stderr, "pid %d on %s watches this stack already; waiting to take over.\n", lease.PID, lease.Host)
	}
	return controller.Run(soft, cfg)
}

// configured is what the controller works with, but for its providers. Files that are followed may be nil.
func configured(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, flags Options, files *followed) (controller.Config, error) {
	cfg := controller.Config{
		Store: l.Stack.Store, Version: release.Version(), Command: "fray watch",
		Parallelism: flags.Parallelism, UntilUndeclared: flags.Detached, Observe: flags.Observe,
		Log: newLog(a.Stderr, slog.LevelInfo),
	}
	var err error
	if cfg.Hold, err = hold(a, l.Stack.Workspace, flags.Policies); err != nil {
		return cfg, err
	}
	if cfg.Service, err = service(ctx, l.Stack, l.Document, flags); err != nil {
		return cfg, err
	}
	sealer, err := l.Stack.Sealer(ctx, l.Document, false)
	if err != nil {
		return cfg, err
	}
	cfg.Recorded = configuration.RecordingOpener(l.Stack, sealer)
	cfg.Notices = &notices.Config{Workspace: l.Stack.Workspace, Reveal: func(t schema.Text) (string, error) { return t.Reveal(sealer) }}
	cfg.Leading = func(ctx context.Context, lease *store.Held) error {
		l.Stack.Keys.Refresh()
		if err := l.Stack.FinishRekey(ctx, apply.Rewriter{Store: l.Stack.Store, Version: release.Version(), Epoch: lease.Epoch(), Valid: lease.Valid}); err != nil {
			return err
		}
		return files.rekeyed(ctx)
	}
	if flags.Observe {
		cfg.Command = stack.WatchObserves
	}
	if files != nil {
		cfg.Proposal = files.latest.Load
	}
	return cfg, nil
}

// attended has the controller show what it does to the user who waits at a terminal.
func attended(cfg *controller.Config, a *terminal.Terminal, s *stack.Stack) *progress.Progress {
	p := progress.New(a)
	p.Drifts = map[plan.Drift]bool{}
	cfg.Notify = p.Step
	cfg.Log = newLog(a.Stderr, loop.LevelNews)
	fmt.Fprintf(a.Stderr, "Watching the stack in %s. Ctrl-C ends the watch, not the jobs.\n", s.Store.Location())
	cfg.Serving = func(http string) {
		if http != "" {
			p.Line("Page and metrics: %s", http)
		}
	}
	return p
}

// newLog is a log from a level on. News of a watch that is well has the name INFO, as what
// is printed at length has.
func newLog(w io.Writer, from slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: from, ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
		if level, ok := attr.Value.Any().(slog.Level); ok && len(groups) == 0 && attr.Key == slog.LevelKey && level == loop.LevelNews {
			return slog.String(slog.LevelKey, slog.LevelInfo.String())
		}
		return attr
	}}))
}

// locateOrBegin finds the stack of a configuration. One that was never applied
// is begun, with nothing in it: programs may launch what is to run there.
func locateOrBegin(ctx context.Context, a *terminal.Terminal, args []string, flags configuration.Options) (*configuration.Loaded, error) {
	l, err := configuration.Locate(ctx, a, args, flags)
	if !errors.Is(err, configuration.ErrNoState) {
		return l, err
	}
	if l, err = configuration.Load(ctx, a, args, flags, true); err != nil {
		return nil, err
	}
	if len(l.Config.Ranges) == 0 && len(l.Source.Files()) == 0 {
		return nil, configuration.ErrNoState
	}
	// A first apply that comes at the same time waits for it, and goes first else.
	begin := func(ctx context.Context, w apply.Rewriter) error {
		_, err := w.Edit(ctx, func(doc *state.Document) (*state.Document, error) {
			next := doc.Clone()
			next.LocalPlace = l.Stack.Place()
			return next, nil
		})
		return err
	}
	if err := stack.UnderLease(ctx, a, l.Stack, store.LeaseConfig{Wait: time.Minute, Yields: true}, begin); err != nil {
		return nil, err
	}
	return configuration.Locate(ctx, a, args, flags)
}

// service is what a watch serves, as its flags say.
func service(ctx context.Context, s *stack.Stack, doc *state.Document, flags Options) (controller.Service, error) {
	served := controller.Service{API: flags.API, Advertise: flags.Advertise, HTTP: flags.HTTP, Stack: doc.Stack()}
	if served.HTTP == serveOff || flags.Detached && flags.HTTP == HTTPDefault {
		served.HTTP = ""
	}
	var err error
	if flags.Page {
		if served.Page, served.PageToken, err = inheritedPage(s); err != nil {
			return served, err
		}
	}
	switch served.API {
	case serveOff:
		served.API = ""
		return served, nil
	case ServeAuto:
		served.API = "127.0.0.1:0"
		if s.Store.WriteInterval() > 0 { // hosts elsewhere have to reach it
			served.API = ":0"
		}
	}
	served.Sealer, err = s.Sealer(ctx, doc, true)
	return served, err
}
