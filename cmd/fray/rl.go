package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

const envRLConfig = "FRAY_RL_CONFIG" // a file's name, or the JSON document itself

func rlCommand(a *terminal.Terminal) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "rl ROLE[:INDEX]...",
		Short: "Host roles of a reinforcement learning run",
		Long: `Host roles of a reinforcement learning run as actors of this process, under the names of
the roles. The module nexrl starts it in each of its jobs; a run is described in
docs/guides/nexrl.md.

ROLE is data_loader, validate_dataloader, trajectory_pool, train_batch_pool,
weight_sync_controller, validator, activity_tracker or controller. INDEX is which of
several; without it all of the role are hosted here. The controller's process hosts the
activity tracker, too, unless the configuration gives that a count of its own.

Each process ends when the run has: with status 0, or 1 for that of the controller if the
run failed. It ends at once if the run has ended before, by ended.json in the directory
out; another value of the key run begins another run there. A controller that is killed
is no end: the others wait for its next process. A process that is ended by SIGTERM
before has status 143, so that it is started again.

The roles that compute (rollout_worker, algorithm_processor, train_worker,
train_service, inference_service) are hosted by "python -m fray.rl".`,
		Example: `  fray rl data_loader trajectory_pool train_batch_pool --config run.json
  fray rl trajectory_pool:1 --config run.json
  fray rl weight_sync_controller controller`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := runRoles(cmd.Context(), a, file, args)
			if isFinalEnd(err) {
				return recordFinalEnd(err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the run's configuration, a JSON `FILE` (default: the file or JSON in "+envRLConfig+")")
	return cmd
}

func runRoles(ctx context.Context, a *terminal.Terminal, file string, args []string) error {
	cfg, err := readRLConfig(file)
	if err != nil {
		return err
	}
	parts, err := roles.ParseParts(args, cfg)
	if err != nil {
		return err
	}
	return hostRoles(ctx, a, parts, cfg)
}

// isFinalEnd reports whether each further attempt would end in the same way.
func isFinalEnd(err error) bool {
	_, failed := errors.AsType[*roles.RunError](err)
	_, invalid := errors.AsType[*config.InvalidError](err)
	_, misplaced := errors.AsType[*roles.PartError](err)
	return failed || invalid || misplaced
}

// hostRoles hosts roles until their run has ended. A signal before is an error: the run goes on, with the next process.
func hostRoles(ctx context.Context, a *terminal.Terminal, parts []roles.Part, cfg *config.Config) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case came := <-signals:
			cancel(&terminal.Exit{Code: 128 + int(came.(syscall.Signal)), Msg: fmt.Sprintf("ended by %s before the run has ended", signalName(came))})
		case <-ctx.Done():
		}
	}()
	env := roles.Environment{Out: a.Stdout, Log: slog.New(slog.NewTextHandler(a.Stderr, nil))}
	env.Store = func(ctx context.Context, location string) (store.Store, error) {
		return stack.Location(location).Open(ctx)
	}
	var release func()
	var err error
	if env.Host, release, err = host.FromEnvironment(os.Getenv); err != nil {
		return err
	}
	defer release()
	if env.Host.Metadata != nil {
		if env.Client, err = actorrpc.FromEnvironment(ctx); err != nil {
			return err
		}
		defer func() { _ = env.Client.Close() }()
	}
	env.Ready = func(actors []resolver.Endpoint) {
		for _, actor := range actors {
			fmt.Fprintf(a.Stderr, "%s at %s\n", actor.Name, actor.Address)
		}
	}
	if err := roles.Serve(ctx, parts, cfg, env); err != nil {
		return err
	}
	if exit, interrupted := errors.AsType[*terminal.Exit](context.Cause(ctx)); interrupted {
		return exit
	}
	return nil
}

func signalName(s os.Signal) string {
	if s == syscall.SIGTERM {
		return "SIGTERM"
	}
	return "Ctrl-C"
}

// recordFinalEnd has the agent of the host know of an error for which there is to be no further attempt.
func recordFinalEnd(why error) error {
	path := os.Getenv(schema.TerminationVariable)
	if path == "" {
		return why
	}
	record, err := json.Marshal(schema.Termination{Cause: schema.TerminationFinal, Message: why.Error()})
	if err == nil {
		err = os.WriteFile(path, record, 0o600)
	}
	if err != nil {
		return errors.Join(why, fmt.Errorf("record why there is to be no further attempt: %w", err))
	}
	return why
}

// readRLConfig reads the configuration of a file, or that which the environment has.
func readRLConfig(file string) (*config.Config, error) {
	from := file
	if from == "" {
		from = os.Getenv(envRLConfig)
	}
	if from == "" {
		return nil, errors.New("no configuration: name its file by --config, or set " + envRLConfig)
	}
	text := []byte(from)
	if file != "" || !strings.HasPrefix(strings.TrimSpace(from), "{") {
		var err error
		if text, err = os.ReadFile(from); err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
	} else {
		from = envRLConfig
	}
	cfg, err := config.Read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return cfg, nil
}
