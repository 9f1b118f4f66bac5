package savedplan

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

// shownBesides is what fray plan shows besides changes, for fray show.
type shownBesides struct {
	Time      time.Time            `json:"time"`
	Blocked   []plan.BlockedChange `json:"blocked,omitempty"`
	Drift     []plan.Drift         `json:"drift,omitempty"`
	Pending   []plan.Pending       `json:"pending,omitempty"`
	Capacity  []plan.Capacity      `json:"capacity,omitempty"`
	Expiries  []plan.Expiry        `json:"expiries,omitempty"`
	Costs     []plan.Cost          `json:"costs,omitempty"`
	Running   []plan.Running       `json:"running,omitempty"`
	Warnings  []markdown.Problem   `json:"warnings,omitempty"` // of the files
	Policies  []plan.PolicyResult  `json:"policies,omitempty"`
	Budgets   []plan.MoneyBudget   `json:"money_budgets,omitempty"`
	Schedules []plan.ScheduledRuns `json:"schedules,omitempty"`
	Actions   []shownAction        `json:"actions,omitempty"`
	Wake      time.Time            `json:"wake,omitzero"`
}

type shownAction struct {
	Verb  plan.ActionVerb `json:"action"`
	Addr  schema.Address  `json:"address"`
	Slice string          `json:"slice,omitempty"`
}

func besidesOf(l *configuration.Loaded, p *plan.Plan) shownBesides {
	b := shownBesides{Time: time.Now().UTC(), Blocked: p.Blocked, Drift: p.Drift, Pending: p.Pending, Capacity: p.Capacity, Expiries: p.Expiries, Costs: p.Costs, Running: p.Running, Budgets: p.MoneyBudgets, Schedules: p.Schedules, Policies: p.Policies, Warnings: proposal.Warnings(l), Wake: p.Wake}
	for i := range p.Actions {
		b.Actions = append(b.Actions, shownAction{p.Actions[i].Verb, p.Actions[i].Addr, p.Actions[i].Slice.Name})
	}
	return b
}

// plan is the saved plan as far as it is shown.
func (sp *Plan) plan() *plan.Plan {
	p := &plan.Plan{
		Mode: sp.Mode, Outputs: sp.Outputs, Blocked: sp.Shown.Blocked, Amendments: sp.Amendments,
		Drift: sp.Shown.Drift, Pending: sp.Shown.Pending, Capacity: sp.Shown.Capacity, Expiries: sp.Shown.Expiries, Costs: sp.Shown.Costs, Running: sp.Shown.Running, MoneyBudgets: sp.Shown.Budgets, Schedules: sp.Shown.Schedules, Policies: sp.Shown.Policies, Wake: sp.Shown.Wake,
	}
	for _, a := range sp.Shown.Actions {
		p.Actions = append(p.Actions, plan.Action{Verb: a.Verb, Addr: a.Addr, Slice: &schema.SliceSpec{Name: a.Slice}})
	}
	changed := make(map[schema.Address]plan.Change, len(sp.Changes))
	for _, c := range sp.Changes {
		changed[c.Addr] = c
	}
	for _, addr := range configuration.DesiredAddresses(&sp.Desired) {
		if _, ok := changed[addr]; !ok {
			changed[addr] = plan.Change{Addr: addr, Verb: plan.VerbNone}
		}
	}
	for _, addr := range stack.SortedAddresses(changed) {
		p.Changes = append(p.Changes, changed[addr])
	}
	return p
}

// Markdown is a saved plan for a review, as [proposal.Markdown] was when it was made.
func (sp *Plan) Markdown() markdown.Input {
	p := sp.plan()
	return markdown.Input{
		Header: markdown.Header{Workspace: sp.Workspace, FrayVersion: sp.FrayVersion, Serial: sp.Serial, Revision: sp.Revision},
		Plan:   p, Problems: sp.Shown.Warnings, Policies: markdown.PoliciesOf(p),
	}
}

// ShowMarkdown prints a saved plan as Markdown.
func ShowMarkdown(ctx context.Context, a *terminal.Terminal, path string, limit markdown.Limit) error {
	saved, err := Read(ctx, path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Stdout, markdown.Render(saved.Markdown(), limit))
	return err
}

// Show prints a saved plan.
func Show(ctx context.Context, a *terminal.Terminal, path string, asJSON, verbose bool) error {
	saved, err := Read(ctx, path)
	if err != nil {
		return err
	}
	if asJSON {
		return render.JSON(a.Stdout, saved.plan(), render.Meta{
			FrayVersion: saved.FrayVersion, Workspace: saved.Workspace, Lineage: saved.Lineage, Serial: saved.Serial, Revision: saved.Revision,
			Applicable: true, Time: saved.Shown.Time,
		})
	}
	if saved.Workspace != "" && saved.Workspace != schema.DefaultWorkspace {
		fmt.Fprintf(a.Stdout, "Workspace %s:\n\n", saved.Workspace)
	}
	return render.Text(a.Stdout, saved.plan(), render.Options{Color: a.Color(a.Stdout), Width: a.Width(a.Stdout), Verbose: verbose})
}
