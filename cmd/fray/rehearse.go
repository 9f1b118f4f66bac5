package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
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

--scenario is calm, usual, stormy, or a file (docs/guides/rehearsal.md).
--from-events makes the scenario of what the events of this stack recorded: how long
slices took to come up, which were preempted and when, and when zones had no
capacity. With --json
the report is one JSON document (docs/rehearsal-json.md). Exit code 1 means that fray
itself did something that it never should.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.lastsGiven = cmd.Flags().Changed("for")
			switch {
			case flags.pace < 0:
				return errors.New("--pace must not be negative")
			case flags.lasts <= 0:
				return errors.New("--for must be above 0")
			case flags.fromEvents && cmd.Flags().Changed("scenario"):
				return errors.New("--from-events makes the scenario: leave out --scenario, or write it with --save-scenario and change that file")
			case flags.save != "" && !flags.fromEvents:
				return errors.New("--save-scenario writes what --from-events makes: add --from-events")
			}
			return runRehearsal(cmd.Context(), a, args, flags)
		},
	}
	register.Config(&flags.Options, cmd)
	_ = cmd.Flags().MarkHidden("local") // it never is
	cmd.Flags().StringVar(&flags.scenario, "scenario", rehearse.ScenarioUsual, "the faults: calm, usual, stormy or a `FILE`")
	cmd.Flags().BoolVar(&flags.fromEvents, "from-events", false, "the faults that the events of this stack recorded")
	cmd.Flags().StringVar(&flags.save, "save-scenario", "", "with --from-events: write the scenario to `FILE`, too")
	cmd.Flags().DurationVar(&flags.lasts, "for", 7*24*time.Hour, "rehearse this `TIME`; with --from-events the time that the events cover, unless given")
	cmd.Flags().DurationVar(&flags.pace, "pace", 0, "plan at most once per `TIME` of the rehearsal; 0: 1s, from 200 slices on 1s for every 40")
	cmd.Flags().Uint64Var(&flags.seed, "seed", 0, "draw the faults from `NUMBER`; 0: the scenario's own, or 1")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON (docs/rehearsal-json.md)")
	return cmd
}
