package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/agent/profiler"
	"github.com/fray-ml/fray/agent/shim"
	"github.com/fray-ml/fray/agent/task"
	"github.com/fray-ml/fray/hostagent"
	"github.com/fray-ml/fray/terminal"
)

// agentCommand is what providers start on every host; its flags are
// agent.ParseArgs's, not people's.
func agentCommand(a *terminal.Terminal) *cobra.Command {
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
				return hostagent.RunCloud(ctx, a, parsed)
			}
			return hostagent.Run(ctx, a, parsed, agent.Config{Sealer: hostagent.KeyFile(parsed.KeyFile)})
		},
	}
}

// shimCommand outlives the agent that started it; see shim.Run.
func shimCommand(a *terminal.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    "task-shim",
		Short:  "Hold one task (started by the agent)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ready, ok := a.Stdout.(io.WriteCloser)
			if !ok {
				return fmt.Errorf("task-shim is started by fray agent, not by hand")
			}
			return shim.Run(a.Stdin, ready)
		},
	}
}

// profilerCommand measures a task's processes; its only argument is an order of agent/profiler.
func profilerCommand(a *terminal.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    task.ProfilerCommand,
		Short:  "Measure one task (started by the agent)",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var order profiler.Order
			if err := json.Unmarshal([]byte(args[0]), &order); err != nil {
				return fmt.Errorf("%s is started by fray agent, not by hand: %w", task.ProfilerCommand, err)
			}
			if code := profiler.Run(cmd.Context(), order, a.Stdout, a.Stderr); code != 0 {
				return &terminal.Exit{Code: code}
			}
			return nil
		},
	}
}
