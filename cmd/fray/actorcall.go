package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/commandline"
	"github.com/fray-ml/fray/runclient"
	"github.com/fray-ml/fray/terminal"
)

func actorCallCommand(a *terminal.Terminal) *cobra.Command {
	var flags runclient.ActorOptions
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "call ACTOR METHOD [JSON]",
		Short: "Call a method of an actor",
		Long: `Call a method and print what it returns, as JSON. Of a method that streams each item
is printed when it comes, in a line of its own; Ctrl-C ends the method. ACTOR is a name, the
address of the job that hosts it, or actor://HOST:PORT/NAME. The arguments are JSON: a list is
the positional ones, an object those by name, anything else a single one.

  fray actor call counter add '[2]'
  fray actor call actor_service.inference[1] predict '{"prompts": ["Hello"]}'

Values that JSON does not have are written {"$bytes": BASE64}, {"$time": RFC 3339} or
{"$ndarray": {"dtype", "shape", "data"}}, and printed so.

The call runs once or not at all; where that cannot be known, the error states it.`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return commandline.Hint("fray actor describe ACTOR shows the methods")
			case len(args) > 3:
				return commandline.Hint("several arguments are one list in quotes, as in '[1, \"two\"]'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := actorArguments(slices.Concat(args, []string{"[]"})[2])
			if err != nil {
				return err
			}
			return runclient.WithActor(cmd.Context(), a, flags, args[0], func(ctx context.Context, _ *actorrpc.Client, h actorrpc.Handle) error {
				err := runclient.CallActor(ctx, a, h.With(actorrpc.RPCOptions{Timeout: timeout}), args[1], given)
				if e, ok := errors.AsType[*rpcerror.Error](err); ok && e.Code == rpcerror.CodeUnknownMethod && len(e.Suggestions) == 0 {
					return fmt.Errorf("%w; fray actor describe %s lists its methods", err, args[0])
				}
				return err
			})
		},
	}
	registerActor(&flags, cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give the call up after this `TIME`, such as 30s; 0 waits for its end")
	return cmd
}

func actorDescribeCommand(a *terminal.Terminal) *cobra.Command {
	var flags runclient.ActorOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe ACTOR",
		Short: "The methods of an actor",
		Long: `Ask an actor for its methods: their arguments, whether running one twice does no
harm (idempotent), whether they stream, and what they say of themselves. ACTOR is as in fray actor call.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runclient.WithActor(cmd.Context(), a, flags, args[0], func(ctx context.Context, client *actorrpc.Client, h actorrpc.Handle) error {
				methods, err := client.Methods(ctx, h)
				if err != nil {
					return fmt.Errorf("fray actor describe: %w", err)
				}
				return runclient.DescribeActor(a, methods, asJSON)
			})
		},
	}
	registerActor(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}

// actorArguments reads the arguments of a call.
func actorArguments(text string) ([]any, error) {
	text = strings.TrimSpace(text)
	given, named := text, "{}"
	switch {
	case strings.HasPrefix(text, "["):
	case strings.HasPrefix(text, "{") && !strings.HasPrefix(strings.TrimSpace(text[1:]), `"$`):
		named, text = text, "[]"
	default:
		text = "[" + text + "]"
	}
	whole := "[" + text + "," + named + "]"
	if !json.Valid([]byte(whole)) {
		return nil, fmt.Errorf("fray actor call: the arguments are no JSON: %s; quote them for the shell, as in '[1, \"two\"]'", given)
	}
	args, err := codec.DecodeArgs(codec.JSON, []byte(whole), nil, 0)
	if err != nil {
		return nil, fmt.Errorf("fray actor call: %w", err)
	}
	if len(args.Named) > 0 {
		return append(args.Positional, actorrpc.Named(args.Named)), nil
	}
	return args.Positional, nil
}
