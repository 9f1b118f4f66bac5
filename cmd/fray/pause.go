package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func pauseCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	var reason string
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Have a watch observe only and change nothing",
		Long: `Have fray watch observe only and change nothing until fray resume: what runs keeps
running, what dies stays dead and is shown as drift, what programs launch waits,
and fray apply is rejected. The pause is in the state, so that another watch keeps to
it too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags.Configuration.Changes = true
			l, err := surgery.LocateState(cmd.Context(), a, &flags.Options)
			if err != nil {
				return err
			}
			err = surgery.EditState(cmd.Context(), a, l.Stack, flags.LeaseTimeout, func(doc *state.Document) (*state.Document, error) {
				return pause.Set(doc, state.Pause{At: time.Now().UTC(), By: stack.UserAtHost(), Reason: reason}), nil
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, "Paused: nothing is changed until fray resume. What runs keeps running.")
			return nil
		},
	}
	register.Edit(&flags, cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`WHY`, shown where the stack is reported as paused")
	return cmd
}

func resumeCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.EditOptions
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Let a paused stack go on",
		Long:  `Let a stack that fray pause stopped go on: a watch repairs what died meanwhile.`,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags.Configuration.Changes = true
			l, err := surgery.LocateState(cmd.Context(), a, &flags.Options)
			if err != nil {
				return err
			}
			var was *state.Pause
			err = surgery.EditState(cmd.Context(), a, l.Stack, flags.LeaseTimeout, func(doc *state.Document) (*state.Document, error) {
				was = doc.Paused
				return pause.Clear(doc), nil
			})
			if err != nil {
				return err
			}
			if was == nil {
				fmt.Fprintln(a.Stdout, "The stack was not paused.")
				return nil
			}
			fmt.Fprintf(a.Stdout, "Resumed, after a pause of %s.\n", time.Since(was.At).Round(time.Second))
			return nil
		},
	}
	register.Edit(&flags, cmd)
	return cmd
}
