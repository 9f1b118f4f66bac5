package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// agentCommand is what providers start on every host; its flags are
// agent.ParseArgs's, not people's.
func agentCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:                "agent",
		Short:              "Run a host's tasks (started by providers)",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := agent.ParseArgs(args)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			if parsed.Metadata {
				return a.runCloudAgent(ctx, parsed)
			}
			return a.runAgent(ctx, parsed, agent.Config{Sealer: &keyFile{path: parsed.KeyFile}})
		},
	}
}

// runAgent serves the host that args name. Of base it takes what they cannot say.
func (a *app) runAgent(ctx context.Context, args agent.Args, base agent.Config) error {
	s, err := location(args.Store).open(ctx)
	if err != nil {
		return err
	}
	if err := store.CheckPlace(s); err != nil {
		return err
	}
	cfg := args.Config()
	cfg.Store, cfg.Sealer, cfg.Notices, cfg.RegistryToken = s, base.Sealer, base.Notices, base.RegistryToken
	if cfg.Sealer == nil {
		cfg.Sealer = storedKey(ctx, s)
	}
	cfg.Follow = func(ctx context.Context, to string) ([]string, error) {
		there, err := location(to).open(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := there.Get(ctx, store.HostKey(args.Slice, args.Host)); err != nil {
			return nil, err
		}
		args.Store = to
		return append([]string{"agent"}, args.Flags()...), nil
	}
	cfg.Version = toolVersion()
	cfg.Log = slog.New(slog.NewTextHandler(a.stderr, nil))
	return agent.Run(ctx, cfg)
}

// keyFile opens the stack's key when the first secret is met: a stack without
// secrets has none.
type keyFile struct{ path string }

func (k *keyFile) Seal(secret string) (string, error) {
	key, err := store.LoadKey(k.path)
	if err != nil {
		return "", err
	}
	return key.Seal(secret)
}

func (k *keyFile) Open(sealed string) (string, error) {
	key, err := store.LoadKey(k.path)
	if err != nil {
		return "", err
	}
	return key.Open(sealed)
}

var _ schema.Sealer = (*keyFile)(nil)

// storedKey is the stack's key as it is in the store, for machines that nobody
// can hand a file to. A failure is not remembered: rights may yet be granted.
func storedKey(ctx context.Context, s store.Store) schema.Sealer {
	var mu sync.Mutex
	var key *state.Key
	return lazyKey(func() (*state.Key, error) {
		mu.Lock()
		defer mu.Unlock()
		if key != nil {
			return key, nil
		}
		object, err := s.Get(ctx, keyring.ObjectKey)
		if err != nil {
			return nil, fmt.Errorf("read the stack's key: %w", err)
		}
		ring, err := keyring.Parse(object.Data)
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", keyring.ObjectKey, s.Location(), err)
		}
		secret, err := openRing(ctx, ring)
		if err != nil {
			return nil, fmt.Errorf("open the stack's key on this host: %w", err)
		}
		key, err = state.NewKey(secret)
		return key, err
	})
}

// shimCommand outlives the agent that started it; see agent.RunShim.
func shimCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "task-shim",
		Short:  "Hold one task (started by the agent)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ready, ok := a.stdout.(io.WriteCloser)
			if !ok {
				return fmt.Errorf("task-shim is started by fray agent, not by hand")
			}
			return agent.RunShim(a.stdin, ready)
		},
	}
}
