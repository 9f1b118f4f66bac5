package roles_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/trajectory"
)

// served is a server of actors, and a client that calls them over its socket.
type served struct {
	server *host.Server
	client *actorrpc.Client
}

// serve serves actors until the test ends.
func serve(tb testing.TB, actors map[string]any) *served {
	tb.Helper()
	server, err := host.New(host.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	for name, actor := range actors {
		if _, err := server.Register(name, actor, optionsOf(actor)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := server.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	s := &served{server: server, client: dial(tb, server.Address())}
	tb.Cleanup(func() { _ = server.Shutdown(context.Background()) })
	return s
}

func optionsOf(actor any) host.Options {
	switch actor.(type) {
	case *roles.Loader:
		return roles.LoaderOptions()
	case *roles.TrainBatches:
		return roles.TrainBatchesOptions()
	case *roles.Validator:
		return roles.ValidatorOptions()
	}
	return roles.PoolOptions()
}

func dial(tb testing.TB, address string) *actorrpc.Client {
	tb.Helper()
	names, err := resolver.NewFixed(address)
	if err != nil {
		tb.Fatal(err)
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *served) actor(tb testing.TB, name string) actorrpc.Handle {
	tb.Helper()
	h, err := s.client.Lookup(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// call calls a method that must succeed.
func call[R any](tb testing.TB, h actorrpc.Handle, method string, args ...any) R {
	tb.Helper()
	out, err := actorrpc.Call[R](tb.Context(), h, method, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// now is the tests' time: it does not go on.
func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newLoader(tb testing.TB, cfg loader.Config, from source.Source) *roles.Loader {
	tb.Helper()
	l, err := roles.NewLoader(roles.LoaderConfig{Loader: cfg, Source: from, Now: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func newPool(tb testing.TB, cfg trajectory.Config, from roles.LoaderStatus, weights roles.BatchNotifier) *roles.Pool {
	tb.Helper()
	p, err := roles.NewPool(roles.PoolConfig{Pool: cfg, Loader: from, Weights: weights, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// direct reads the status of a loader in this process.
type direct struct{ loader *roles.Loader }

func (d direct) Status(context.Context) (rl.LoaderStatus, error) { return d.loader.Status(), nil }

func (d direct) WaitQuiet(ctx context.Context, seconds float64) (rl.LoaderStatus, error) {
	return d.loader.WaitQuiet(ctx, seconds), nil
}

// fixed is a status that does not change.
type fixed rl.LoaderStatus

func (f fixed) Status(context.Context) (rl.LoaderStatus, error) { return rl.LoaderStatus(f), nil }

func (f fixed) WaitQuiet(ctx context.Context, _ float64) (rl.LoaderStatus, error) {
	if !rl.LoaderStatus(f).Quiet() {
		<-ctx.Done()
	}
	return rl.LoaderStatus(f), nil
}

// notified are the batches that were reported.
type notified struct {
	mu  sync.Mutex
	ids []string
	err error
}

func (n *notified) BatchReady(_ context.Context, _ rl.ModelTag, id string, _ *int64) (rl.BatchVerdict, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return rl.BatchVerdict{}, n.err
	}
	n.ids = append(n.ids, id)
	return rl.BatchVerdict{Counted: true}, nil
}

func (n *notified) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.ids...)
}
