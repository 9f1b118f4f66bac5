package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/commandline"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/follow"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/status"
	"github.com/fray-ml/fray/status/selection"
	"github.com/fray-ml/fray/terminal"
)

// addressesAndPaths tells arguments that name files or directories from addresses.
func addressesAndPaths(args []string) (addrs, paths []string) {
	for _, arg := range args {
		_, err := os.Stat(arg)
		if _, noAddress := schema.ParseAddress(arg); filepath.Ext(arg) == ".hcl" || err == nil && noAddress != nil {
			paths = append(paths, arg)
		} else {
			addrs = append(addrs, arg)
		}
	}
	return addrs, paths
}

func statusCommand(a *terminal.Terminal) *cobra.Command {
	var config configuration.Options
	var asJSON, watch bool
	var asked selection.Flags
	var dir string
	cmd := &cobra.Command{
		Use:   "status [ADDR] [DIR | FILE...]",
		Short: "Show what runs, and why something does not",
		Long: `Show every job with its tasks and, where it waits or failed, the reason. With
ADDR, also each of its attempts: why it began, where it ran, how it ended.
status reads only; it takes no lease. DIR or FILE names another stack than that of
the current directory, as it does for fray plan.

A stack of more than 200 jobs is folded: sums by namespace, state and zone, and the
jobs that need attention. --filter shows some of the jobs: conditions FIELD=VALUE,
FIELD!=VALUE or FIELD~TEXT (contains), separated by commas, all of which hold; VALUE|VALUE
is one of several. The fields are name, namespace, state, zone, provider, type, band, user,
waits (what for) and reason. --group-by sums up by some of them, but for name and reason.
--page and --limit list jobs in pages.

--watch goes on looking, once a second, until q or Ctrl-C: on a terminal in a view
of the whole screen (Enter opens a job, ? shows all keys), and else by printing one picture after
another. With --json it prints a document, on one line, whenever something changed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, paths := addressesAndPaths(args)
			asked.HasLimit = cmd.Flags().Changed("limit")
			selected, err := selection.Of(&asked)
			if err != nil {
				return err
			}
			switch {
			case len(args) > 1:
				return commandline.ArgumentsError(cmd, args, errors.New("want one address at most"))
			case len(paths) > 0 && cmd.Flags().Changed("chdir"):
				return fmt.Errorf("fray status: %s and --chdir both name a stack; leave one out", paths[0])
			case len(paths) == 0:
				paths = []string{dir}
			}
			l, err := configuration.Locate(cmd.Context(), a, paths, config)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			w, err := status.NewObserver(ctx, l)
			if err != nil {
				return err
			}
			w.Select = selected
			if len(args) == 1 {
				if w.Only, err = l.Addresses("status", args); err != nil {
					return err
				}
			}
			if watch {
				w.Logs = follow.Logs(l)
				return status.WatchStatus(ctx, a, w, asJSON)
			}
			view, err := w.Observe(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(view.Document())
			}
			return view.Text(a)
		},
	}
	register.Config(&config, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringArrayVar(&asked.Filter, "filter", nil, "show only jobs that meet `CONDITIONS`, such as state=failed|pending,zone=us-west4-a; also several times")
	cmd.Flags().StringSliceVar(&asked.GroupBy, "group-by", nil, "sum up by these `FIELDS`: namespace, state, zone, provider, type, band, user, waits; also several times")
	cmd.Flags().IntVar(&asked.Page, "page", 0, "list the jobs of this `PAGE`, from 1")
	cmd.Flags().IntVar(&asked.Limit, "limit", 200, "list so many `ROWS` on a page; 0: all")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on looking until q or Ctrl-C")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "use the stack of `DIR` (or of one file)")
	return cmd
}
