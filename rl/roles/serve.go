package roles

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/ended"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// Environment is where a process of a run is.
type Environment struct {
	// Host is of the server of its actors: host.FromEnvironment. With Metadata the names are a cluster's, and Client finds
	// them; without, all roles of the run are in this process.
	Host   host.Config
	Client *actorrpc.Client // nil: one that finds the actors of this process only
	// Store opens the store of journals that are in one: gs://BUCKET/PREFIX.
	Store func(ctx context.Context, location string) (store.Store, error)
	Out   io.Writer // for metrics of the logger "console"
	Log   *slog.Logger
	// Ready is called once the actors are served, with where each is; nil: nothing is.
	Ready func(actors []resolver.Endpoint)
}

// stopTime is how long Serve waits for calls when it ends.
const stopTime = 10 * time.Second

// heldTime is how long a role waits for the end of a former process that has its journal open. A host that is preempted may
// have some seconds left, and a lock of a file system of the network goes with its lease.
const heldTime = 2 * time.Minute

// actor is one that is served, and what runs beside it until the process ends.
type actor struct {
	name    string
	value   any
	options host.Options
	tend    func(ctx context.Context) error // nil: nothing
}

// Serve hosts roles in this process until ctx ends or the run has; a run that has ended before is not hosted at all. With the role
// controller a run that failed is a RunError. Where the controller is hosted the activity tracker is, too, unless the
// configuration has it elsewhere.
func Serve(ctx context.Context, parts []Part, cfg *config.Config, env Environment) (err error) {
	if end, err := ended.Of(cfg); err != nil || end != nil {
		return endedBefore(parts, cfg, end, env.Log, err)
	}
	local, err := resolver.NewLocal(nil)
	if err != nil {
		return err
	}
	client := env.Client
	if client == nil {
		client = actorrpc.NewClient(local, actorrpc.Config{Identity: env.Host.Identity, Namespace: env.Host.Namespace})
		defer func() { err = errors.Join(err, client.Close()) }()
	}
	b := &builder{cfg: cfg, env: env, peers: peer.Of(client)}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, part := range withTracker(parts, cfg) {
		if err := b.add(ctx, part); err != nil {
			return fmt.Errorf("%s: %w", part.Name(cfg), err)
		}
	}
	env.Host.Client, env.Host.Log = client, env.Log
	server, err := host.New(env.Host)
	if err != nil {
		return err
	}
	names := make([]string, len(b.actors))
	incarnations := map[string]string{}
	for i, a := range b.actors {
		names[i] = a.name
		if incarnations[a.name], err = server.Register(a.name, a.value, a.options); err != nil {
			return err
		}
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	served := make([]resolver.Endpoint, len(names))
	for i, name := range names {
		served[i] = resolver.Endpoint{Name: name, Address: server.Address(), Incarnation: incarnations[name]}
		local.Set(name, served[i])
	}
	if env.Ready != nil {
		env.Ready(served)
	}
	err = b.tend(ctx)
	unfinished := shutdown(server, names)
	if unfinished != nil && ctx.Err() == nil && err == nil {
		env.Log.Warn("the run has ended, and calls have not", "error", unfinished)
		return nil
	}
	return errors.Join(err, unfinished)
}

// endedBefore is how a process ends that is started after the end of its run.
func endedBefore(parts []Part, cfg *config.Config, end *ended.Record, log *slog.Logger, err error) error {
	if err != nil {
		return err
	}
	log.Info("the run has ended before, and so does this process; for another one in the same directory change the configuration, such as its key run",
		"reason", end.Reason, "recorded in", ended.Path(cfg))
	leads := slices.ContainsFunc(parts, func(part Part) bool { return part.Role == rl.Controller })
	if leads && end.Exit != 0 {
		return &RunError{Reason: end.Reason}
	}
	return nil
}

// withTracker adds the activity tracker to the controller's process.
func withTracker(parts []Part, cfg *config.Config) []Part {
	var controls, tracks bool
	for _, part := range parts {
		controls = controls || part.Role == rl.Controller
		tracks = tracks || part.Role == rl.ActivityTracker
	}
	if elsewhere := cfg.Roles[rl.ActivityTracker].Count; !controls || tracks || elsewhere != nil && *elsewhere > 0 {
		return parts
	}
	return append([]Part{{Role: rl.ActivityTracker}}, parts...)
}

// UnfinishedError is that calls of actors had not ended when their process did.
type UnfinishedError struct {
	Actors []string
	Err    error
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("calls of %s have not ended within %s: %v", strings.Join(e.Actors, ", "), stopTime, e.Err)
}

func (e *UnfinishedError) Unwrap() error { return e.Err }

func shutdown(server *host.Server, names []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return &UnfinishedError{Actors: names, Err: err}
	}
	return nil
}

// builder makes the actors of a process.
type builder struct {
	cfg    *config.Config
	env    Environment
	peers  peer.Peers
	actors []actor
	closed []func() error
	failed []func(ctx context.Context) error // each waits until a journal cannot be written
	leads  *Controller
}

// tend runs what runs beside the actors, until ctx ends or the run does.
func (b *builder) tend(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range b.actors {
		if a.tend != nil {
			group.Go(func() error { return a.tend(ctx) })
		}
	}
	for _, failed := range b.failed {
		group.Go(func() error { return failed(ctx) })
	}
	group.Go(func() error {
		defer cancel()
		if b.leads == nil {
			untilEnded(ctx, b.peers, b.cfg, b.env.Log)
			return nil
		}
		err := b.leads.Run(ctx)
		linger := lingerTime
		if b.env.Host.Metadata != nil {
			linger = lingerTimeCluster
		}
		sleep.For(ctx, linger)
		return err
	})
	return group.Wait()
}

func (b *builder) close() error {
	var all error
	for _, closing := range b.closed {
		all = errors.Join(all, closing())
	}
	return all
}

// journal opens the journal of an actor; nil if the run keeps none of it.
func (b *builder) journal(ctx context.Context, name string, always bool) (record.Journal, [][]byte, error) {
	place := b.cfg.Journals()
	if place == "" || !always && b.cfg.Recovery != rl.RecoverJournal {
		return nil, nil, nil
	}
	j, records, err := b.open(ctx, place, name)
	if err != nil {
		return nil, nil, err
	}
	b.closed = append(b.closed, j.Close)
	b.failed = append(b.failed, func(ctx context.Context) error {
		if err := j.Failed(ctx); err != nil {
			return fmt.Errorf("%s: %w; the process ends, since what it would acknowledge could be lost", name, err)
		}
		return nil
	})
	return j, records, nil
}

// open opens a journal below a place: a directory or a store.
func (b *builder) open(ctx context.Context, place, name string) (*journal.Journal, [][]byte, error) {
	if !strings.Contains(place, "://") {
		return journal.OpenDir(ctx, journal.DirConfig{Path: filepath.Join(place, name), Wait: heldTime, Held: func() {
			b.env.Log.Warn("another process has the journal open: waiting for its end", "actor", name, "longest", heldTime)
		}})
	}
	if b.env.Store == nil {
		return nil, nil, fmt.Errorf("the journal is to be in %s, and this program opens no stores: name a directory", place)
	}
	s, err := b.env.Store(ctx, place)
	if err != nil {
		return nil, nil, fmt.Errorf("open the journal in %s: %w", place, err)
	}
	return journal.OpenStore(ctx, s, name+"/")
}

// instance is a name for this life of an actor.
func instance() string { return strings.ToLower(rand.Text()[:12]) }
