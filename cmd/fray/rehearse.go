package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/rehearse"
	"github.com/fray-ml/fray/terminal"
)

func rehearseCommand(a *terminal.Terminal) *cobra.Command {
	var flags rehearseFlags
	cmd := &cobra.Command{
		Use:   "rehearse [DIR | FILE...]",
		Short: "See how a configuration would fare on Google Cloud",
		Long: `Apply the files to an emulated Google Cloud and keep them true for a week of its
faults: preemptions, stockouts, hosts that die, calls that fail. The clock jumps
from event to event, so that a week takes seconds. Nothing real is touched or run:
jobs are taken to work for the whole time, with a checkpoint every 30 minutes and 4
minutes to get going, unless the scenario's workload blocks say otherwise.

The report states for each job how much of its time was useful and what the rest went
into, what capacity was used and what that is estimated to cost, and what never ran
and why. The same seed gives the same report.

--scenario is calm, usual, stormy, or a file (docs/guides/rehearsal.md). With --json
the report is one JSON document (docs/rehearsal-json.md). Exit code 1 means that fray
itself did something that it never should.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.lasts <= 0 {
				return errors.New("--for must be above 0")
			}
			return runRehearsal(cmd.Context(), a, args, flags)
		},
	}
	registerConfig(&flags.Options, cmd)
	_ = cmd.Flags().MarkHidden("local") // it never is
	cmd.Flags().StringVar(&flags.scenario, "scenario", rehearse.ScenarioUsual, "the faults: calm, usual, stormy or a `FILE`")
	cmd.Flags().DurationVar(&flags.lasts, "for", 7*24*time.Hour, "rehearse so much `TIME`")
	cmd.Flags().Uint64Var(&flags.seed, "seed", 0, "draw the faults from `NUMBER`; 0: the scenario's own, or 1")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON (docs/rehearsal-json.md)")
	return cmd
}
