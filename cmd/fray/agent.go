package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent"
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
			return a.runAgent(ctx, parsed)
		},
	}
}

func (a *app) runAgent(ctx context.Context, args agent.Args) error {
	s, err := location(args.Store).open(ctx)
	if err != nil {
		return err
	}
	cfg := args.Config()
	cfg.Store = s
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
	cfg.Sealer = &keyFile{path: args.KeyFile}
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
