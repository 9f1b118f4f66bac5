package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// shownBesides is what fray plan shows besides changes, for fray show.
type shownBesides struct {
	Time     time.Time       `json:"time"`
	Refusals []plan.Refusal  `json:"refusals,omitempty"`
	Drift    []plan.Drift    `json:"drift,omitempty"`
	Pending  []plan.Pending  `json:"pending,omitempty"`
	Capacity []plan.Capacity `json:"capacity,omitempty"`
	Expiries []plan.Expiry   `json:"expiries,omitempty"`
	Costs    []plan.Cost     `json:"costs,omitempty"`
	Actions  []shownAction   `json:"actions,omitempty"`
	Wake     time.Time       `json:"wake,omitzero"`
}

type shownAction struct {
	Verb  plan.ActionVerb `json:"action"`
	Addr  schema.Address  `json:"address"`
	Slice string          `json:"slice,omitempty"`
}

func besidesOf(p *plan.Plan) shownBesides {
	b := shownBesides{Time: time.Now().UTC(), Refusals: p.Refusals, Drift: p.Drift, Pending: p.Pending, Capacity: p.Capacity, Expiries: p.Expiries, Costs: p.Costs, Wake: p.Wake}
	for i := range p.Actions {
		b.Actions = append(b.Actions, shownAction{p.Actions[i].Verb, p.Actions[i].Addr, p.Actions[i].Slice.Name})
	}
	return b
}

// plan is the saved plan as far as it is shown.
func (sp *savedPlan) plan() *plan.Plan {
	p := &plan.Plan{
		Outputs: sp.Outputs, Refusals: sp.Shown.Refusals, Amendments: sp.Amendments,
		Drift: sp.Shown.Drift, Pending: sp.Shown.Pending, Capacity: sp.Shown.Capacity, Expiries: sp.Shown.Expiries, Costs: sp.Shown.Costs, Wake: sp.Shown.Wake,
	}
	for _, a := range sp.Shown.Actions {
		p.Actions = append(p.Actions, plan.Action{Verb: a.Verb, Addr: a.Addr, Slice: schema.SliceSpec{Name: a.Slice}})
	}
	changed := make(map[schema.Address]plan.Change, len(sp.Changes))
	for _, c := range sp.Changes {
		changed[c.Addr] = c
	}
	for _, addr := range declaredAddresses(&sp.Desired) {
		if _, ok := changed[addr]; !ok {
			changed[addr] = plan.Change{Addr: addr, Verb: plan.VerbNone}
		}
	}
	for _, addr := range sortedAddresses(changed) {
		p.Changes = append(p.Changes, changed[addr])
	}
	return p
}

func showCommand(a *app) *cobra.Command {
	var config configFlags
	var asJSON, verbose bool
	var dir string
	cmd := &cobra.Command{
		Use:   "show [PLANFILE]",
		Short: "Show the state, or a saved plan",
		Long: `Show what the state records of everything that was carried out, or, with
PLANFILE, a saved plan as fray plan printed it. Sensitive values are not shown.
show reads only; it takes no lease and looks at nothing that runs: that is
fray status.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.showSavedPlan(cmd.Context(), args[0], asJSON, verbose)
			}
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(stateAsJSON(l.doc))
			}
			return a.showState(l.doc)
		},
	}
	config.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/show-json.md; of a plan, docs/plan-json.md)")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "of a plan, show every instance and every unchanged attribute")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "show the stack of `DIR` (or of one file)")
	return cmd
}

func (a *app) showSavedPlan(ctx context.Context, path string, asJSON, verbose bool) error {
	saved, err := readPlan(ctx, path)
	if err != nil {
		return err
	}
	if asJSON {
		return render.JSON(a.stdout, saved.plan(), render.Meta{
			FrayVersion: saved.FrayVersion, Workspace: saved.Workspace, Lineage: saved.Lineage, Serial: saved.Serial, Revision: saved.Revision,
			Applicable: true, Time: saved.Shown.Time,
		})
	}
	if saved.Workspace != "" && saved.Workspace != schema.DefaultWorkspace {
		fmt.Fprintf(a.stdout, "Workspace %s:\n\n", saved.Workspace)
	}
	return render.Text(a.stdout, saved.plan(), render.Options{Color: a.color(a.stdout), Width: a.width(a.stdout), Verbose: verbose})
}

func (a *app) showState(doc *state.Document) error {
	var records []render.Record
	for _, d := range plan.Describe(doc) {
		r := render.Record{Addr: d.Addr, Attrs: d.Attrs}
		for _, f := range factsOf(d.Job) {
			value, err := json.Marshal(f.value)
			if err != nil {
				return fmt.Errorf("show %s: %w", d.Addr, err)
			}
			r.Attrs = append(r.Attrs, plan.AttrChange{Path: f.name, Before: value, After: value, Verb: plan.VerbNone})
		}
		records = append(records, r)
	}
	if len(records) == 0 && len(doc.Outputs) == 0 {
		fmt.Fprintln(a.stdout, "The state is empty: nothing is carried out.")
		return nil
	}
	if err := render.Records(a.stdout, records, render.Options{Color: a.color(a.stdout), Width: a.width(a.stdout)}); err != nil {
		return err
	}
	return a.printOutputs(doc.Outputs)
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
	if c, ok := j.Computed(); ok {
		facts = append(facts, fact{"addresses", c.Addresses})
		if len(c.Ports) > 0 {
			facts = append(facts, fact{"ports", c.Ports})
		}
	}
	return facts
}
