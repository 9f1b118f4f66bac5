package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

func showCommand(a *terminal.Terminal) *cobra.Command {
	var config configuration.Options
	var asJSON, verbose bool
	var review register.MarkdownOptions
	var dir string
	cmd := &cobra.Command{
		Use:   "show [PLANFILE]",
		Short: "Show the state, or a saved plan",
		Long: `Show what the state records of all that was carried out, or, with
PLANFILE, a saved plan as fray plan printed it, with --markdown as fray plan
--markdown did. Sensitive values are not shown.
show reads only; it takes no lease and observes nothing that runs: that is
fray status.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			limit, err := review.Limit(cmd, asJSON)
			switch {
			case err != nil:
				return err
			case review.On && len(args) == 0:
				return errors.New("--markdown shows a saved plan: name its file, as in fray show --markdown PLANFILE")
			case review.On:
				return savedplan.ShowMarkdown(cmd.Context(), a, args[0], limit)
			case len(args) == 1:
				return savedplan.Show(cmd.Context(), a, args[0], asJSON, verbose)
			}
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, config)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(stateAsJSON(l.Document))
			}
			return showState(a, l.Document)
		},
	}
	register.Config(&config, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/show-json.md; of a plan, docs/plan-json.md)")
	register.Markdown(&review, cmd)
	cmd.Flags().BoolVar(&verbose, "verbose", false, "of a plan, show every instance and every unchanged attribute")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "show the stack of `DIR` (or of one file)")
	return cmd
}

func showState(a *terminal.Terminal, doc *state.Document) error {
	var records []render.Record
	for _, d := range planchange.Describe(doc) {
		r := render.Record{Addr: d.Addr, Attrs: d.Attrs}
		for _, f := range factsOf(d.Job) {
			value, err := json.Marshal(f.value)
			if err != nil {
				return fmt.Errorf("show %s: %w", d.Addr, err)
			}
			r.Attrs = append(r.Attrs, &plan.AttrChange{Path: f.name, Before: value, After: value, Verb: plan.VerbNone})
		}
		records = append(records, r)
	}
	if len(records) == 0 && len(doc.Outputs) == 0 {
		fmt.Fprintln(a.Stdout, "The state is empty: nothing is carried out.")
		return nil
	}
	if err := render.Records(a.Stdout, records, render.Options{Color: a.Color(a.Stdout), Width: a.Width(a.Stdout)}); err != nil {
		return err
	}
	return configuration.PrintOutputs(a, doc.Outputs)
}

// fact is something that is known of a job since it was carried out.
type fact struct {
	name  string
	value any
}

func factsOf(j *state.Job) []fact {
	if j == nil {
		return nil
	}
	facts := []fact{{"id", j.ID}, {"status", j.Status}, {"ready", j.Ready}}
	if j.Reason != "" {
		facts = append(facts, fact{"reason", j.Reason})
	}
	facts = append(facts, fact{"attempt", j.Attempt}, fact{"failures", j.Failures}, fact{"preemptions", j.Preemptions})
	if len(j.Slices) > 0 {
		facts = append(facts, fact{"slices", j.Slices})
	}
	if c := j.Chosen(); c != nil {
		facts = append(facts, fact{"choice", c})
	}
	if c, ok := j.Computed(); ok {
		facts = append(facts, fact{"addresses", c.Addresses})
		if len(c.Ports) > 0 {
			facts = append(facts, fact{"ports", c.Ports})
		}
	}
	return facts
}
