package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// changeFlags are the flags of the verbs that plan a change.
type changeFlags struct {
	configFlags
	targets, replace []string
	json             bool
}

func (f *changeFlags) register(cmd *cobra.Command) {
	f.configFlags.register(cmd)
	cmd.Flags().StringArrayVar(&f.targets, "target", nil, "only `ADDR` and what it depends on; may be repeated")
	cmd.Flags().StringArrayVar(&f.replace, "replace", nil, "give `ADDR` new slices and a fresh start; may be repeated")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON (docs/plan-json.md)")
}

func planCommand(a *app) *cobra.Command {
	var flags changeFlags
	var out string
	var detailed, verbose bool
	cmd := &cobra.Command{
		Use:   "plan [DIR | FILE...]",
		Short: "Show what apply would do",
		Long: `Show what apply would do, and nothing else: plan takes no lease and writes nothing
but the file that --out names.

Outputs are compared with those that the last apply recorded in the state. With
--detailed-exitcode, an output that gets another value is something to do (exit
code 2), also where nothing else changes.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			flags.input = flags.input && !flags.json
			l, err := a.load(ctx, args, flags.configFlags, out != "") // a saved plan needs a key that stays
			if err != nil {
				return err
			}
			c, err := l.change(a, &flags)
			if err != nil {
				return err
			}
			p, err := l.preview(ctx, c)
			if err != nil {
				return err
			}
			if err := a.showPlan(l, p, flags.json, verbose); err != nil {
				return err
			}
			if err := a.refusals(l, p); err != nil {
				return err
			}
			if out != "" {
				if err := savePlan(cmd.Context(), out, l, c, p); err != nil {
					return err
				}
				if !flags.json {
					fmt.Fprintf(a.stdout, "\nSaved to %s. To carry out exactly this plan:\n\n  fray apply %s\n", out, shellWord(out))
				}
			}
			if detailed && !p.Empty() {
				return &exit{code: exitChanges}
			}
			return nil
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "save the plan to `FILE` for fray apply FILE")
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 0 when there is nothing to do, 2 when there is, 1 on errors")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show every instance and every unchanged attribute")
	return cmd
}

// change is what is asked for. It is worked out again on the state found under
// the lease, which may be newer than the one that the user was shown.
type change struct {
	desired       func(doc *state.Document) schema.Desired
	replace, stop []schema.Address
	unlaunch      []schema.Address // what programs launched that goes
	unlaunchAll   bool
	targets       []schema.Address
	amender       *amender // what comes before; nil: nothing
	// recorded names the recording of the configuration, "" for none; keeps says
	// that it is the one that it was.
	recorded string
	keeps    bool
}

func (c *change) request(doc *state.Document) apply.Request {
	return apply.Request{Desired: c.desired(doc), Replace: c.replace, Stop: c.stop, Unlaunch: c.unlaunch, UnlaunchAll: c.unlaunchAll, Recorded: c.recorded, KeepRecorded: c.keeps}
}

// change resolves --target and --replace against what is declared and known.
func (l *loaded) change(a *app, f *changeFlags) (*change, error) {
	targets, err := l.addresses("--target", f.targets)
	if err != nil {
		return nil, err
	}
	replace, err := l.addresses("--replace", f.replace)
	if err != nil {
		return nil, err
	}
	c := &change{targets: targets, replace: replace}
	c.desired = func(doc *state.Document) schema.Desired { return c.narrow(doc, l.desired) }
	c.amender = l.amender(a, c)
	return c, nil
}

// narrow keeps to the targets, if there are any.
func (c *change) narrow(doc *state.Document, desired schema.Desired) schema.Desired {
	if len(c.targets) == 0 {
		return desired
	}
	return apply.Target(doc.Desired, desired, c.targets)
}

// addresses parses the values of a flag ("--target") or the arguments of a verb
// ("logs") and refuses those that name nothing.
func (l *loaded) addresses(of string, values []string) ([]schema.Address, error) {
	giver, separator := of, "="
	if !strings.HasPrefix(of, "--") {
		giver, separator = "fray "+of, ": "
	}
	var out []schema.Address
	for _, v := range values {
		addr, err := schema.ParseAddress(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", giver, err)
		}
		if !known(addr, l.doc, &l.desired) {
			return nil, fmt.Errorf("%s%s%s: nothing of that address is declared or known%s", giver, separator, v, didYouMean(v, l.doc, &l.desired))
		}
		out = append(out, addr)
	}
	return out, nil
}

// preview looks at the world and plans, without a lease.
func (l *loaded) preview(ctx context.Context, c *change) (*plan.Plan, error) {
	all, err := l.stack.providers(ctx, l.desired.Providers, l.doc)
	if err != nil {
		return nil, err
	}
	observer := &apply.Observer{Store: l.stack.store, Providers: all}
	obs, err := observer.Observe(ctx, l.doc.Stack())
	if err != nil {
		return nil, err
	}
	amended, amendments, err := c.amender.amend(ctx, l.doc)
	if err != nil {
		return nil, err
	}
	if c.amender != nil {
		asMarked(c.amender.intakes, obs)
	}
	doc := l.accept(ctx, c, amended)
	if err := l.impossible(doc); err != nil {
		return nil, err
	}
	p := plan.Diff(&doc.Desired, doc, obs, time.Now())
	p.Amendments, p.Costs = amendments, plan.Costs(&doc.Desired, p, obs)
	return p, l.explain(ctx, p, c, l.doc)
}

// showPlan prints a plan as text or JSON.
func (a *app) showPlan(l *loaded, p *plan.Plan, asJSON, verbose bool) error {
	if asJSON {
		return render.JSON(a.stdout, p, render.Meta{
			FrayVersion: toolVersion(), Workspace: l.stack.workspace, Lineage: l.doc.Lineage, Serial: l.doc.Serial, Revision: l.doc.Revision,
			Applicable: true, Time: time.Now().UTC(),
		})
	}
	if name := l.stack.named(); name != "" {
		fmt.Fprintf(a.stdout, "Workspace %s:\n\n", name)
	}
	return render.Text(a.stdout, p, render.Options{Color: a.color(a.stdout), Width: a.width(a.stdout), Verbose: verbose})
}
