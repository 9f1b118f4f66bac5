package proposal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// ChangeOptions are the flags of the verbs that plan a change.
type ChangeOptions struct {
	configuration.Options
	Targets, Replace []string
	JSON             bool
	// Destroy and RefreshOnly choose another mode than that of apply.
	Destroy, RefreshOnly bool
	Policies             policies.Options
}

// mode is what is planned for, or an error where the options contradict each other.
func (f *ChangeOptions) mode() (plan.Mode, error) {
	switch {
	case f.Destroy && f.RefreshOnly:
		return "", errors.New("--destroy and --refresh-only exclude each other: leave one out")
	case !f.Destroy && !f.RefreshOnly:
		return plan.ModeApply, nil
	case len(f.Replace) > 0:
		return "", errors.New("--replace goes with neither --destroy nor --refresh-only: nothing is started")
	case f.Destroy:
		return plan.ModeDestroy, nil
	}
	return plan.ModeRefreshOnly, nil
}

// Change is what is asked for. It is worked out again on the state found under
// the lease, which may be newer than the one that the user was shown.
type Change struct {
	Mode          plan.Mode
	Desired       func(doc *state.Document) schema.Desired
	Replace, Stop []schema.Address
	Unlaunch      []schema.Address // what programs launched that goes
	UnlaunchAll   bool
	Targets       []schema.Address
	Amender       *Amender // what comes before; nil: nothing
	// Policies hold for its plans, nil: none.
	Policies *policies.Policies
	// Recorded names the recording of the configuration, "" for none. KeepsRecorded leaves
	// the recorded configuration as it is.
	Recorded      string
	KeepsRecorded bool
}

// Request is the change of a document, as apply takes it.
func (c *Change) Request(doc *state.Document) apply.Request {
	return apply.Request{Desired: c.Desired(doc), Replace: c.Replace, Stop: c.Stop, Unlaunch: c.Unlaunch, UnlaunchAll: c.UnlaunchAll, Recorded: c.Recorded, KeepRecorded: c.KeepsRecorded, By: stack.UserAtHost()}
}

// Read reads what the options plan a change of, with the policies that hold for it, and
// returns both. A destroy and a refresh read no more of the files than where the state is.
func Read(ctx context.Context, a *terminal.Terminal, args []string, f *ChangeOptions, create bool) (*configuration.Loaded, *Change, error) {
	mode, err := f.mode()
	if err != nil {
		return nil, nil, err
	}
	var l *configuration.Loaded
	var c *Change
	var dir string
	if mode == plan.ModeApply {
		if l, err = configuration.Load(ctx, a, args, f.Options, create); err != nil {
			return nil, nil, err
		}
		dir = l.Source.Dir()
		c, err = New(l, a, f)
	} else {
		if l, err = configuration.Locate(ctx, a, args, f.Options); err != nil {
			return nil, nil, err
		}
		dir = l.Site.Dir
		var targets []schema.Address
		if targets, err = l.Addresses("--target", f.Targets); err == nil {
			c = OfState(l, mode, targets)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	c.Policies, err = policies.Load(a, dir, f.Policies)
	return l, c, err
}

// OfState is a change that the state alone decides: a destroy of everything, or of targets
// with what depends on them, or the record of what was observed.
func OfState(l *configuration.Loaded, mode plan.Mode, targets []schema.Address) *Change {
	c := &Change{Mode: mode, Targets: targets, KeepsRecorded: true}
	if mode == plan.ModeRefreshOnly {
		c.Desired = func(doc *state.Document) schema.Desired { return doc.Desired }
		return c
	}
	l.Desired = schema.Desired{}
	c.Targets, c.Unlaunch, c.UnlaunchAll = nil, targets, len(targets) == 0
	c.Desired = func(doc *state.Document) schema.Desired {
		if len(targets) > 0 {
			return apply.Without(doc.Desired, targets)
		}
		return schema.Desired{Providers: doc.Desired.Providers}
	}
	return c
}

// Within reports what the targets of a refresh cover; nil: everything.
func (c *Change) Within() func(schema.Address) bool {
	if len(c.Targets) == 0 {
		return nil
	}
	return func(addr schema.Address) bool {
		return slices.ContainsFunc(c.Targets, func(t schema.Address) bool { return t.Contains(addr) })
	}
}

// New resolves --target and --replace against what is declared and known.
func New(l *configuration.Loaded, a *terminal.Terminal, f *ChangeOptions) (*Change, error) {
	targets, err := l.Addresses("--target", f.Targets)
	if err != nil {
		return nil, err
	}
	replace, err := l.Addresses("--replace", f.Replace)
	if err != nil {
		return nil, err
	}
	c := &Change{Targets: targets, Replace: replace}
	c.Desired = func(doc *state.Document) schema.Desired { return c.Narrow(doc, l.Desired) }
	c.Amender = NewAmender(l, a, c)
	return c, nil
}

// Narrow keeps to the targets, if there are any.
func (c *Change) Narrow(doc *state.Document, desired schema.Desired) schema.Desired {
	if len(c.Targets) == 0 {
		return desired
	}
	return apply.Target(doc.Desired, desired, c.Targets)
}

// Preview observes and plans, without a lease.
func Preview(ctx context.Context, l *configuration.Loaded, c *Change) (*plan.Plan, error) {
	all, err := l.Stack.Providers(ctx, l.Desired.Providers, l.Document)
	if err != nil {
		return nil, err
	}
	observer := &apply.Observer{Store: l.Stack.Store, Providers: all}
	if c.Mode == plan.ModeRefreshOnly {
		p, err := observer.Refresh(ctx, l.Document, c.Within())
		if err != nil {
			return nil, err
		}
		p.Targets = c.Targets
		return p, c.Judge(l, p, l.Document)
	}
	obs, err := observer.Observe(ctx, l.Document.Stack())
	if err != nil {
		return nil, err
	}
	amended, amendments, err := c.Amender.Amend(ctx, l.Document)
	if err != nil {
		return nil, err
	}
	if c.Amender != nil {
		asMarked(c.Amender.intakes, obs)
	}
	doc := Accept(ctx, l, c, amended)
	if err := CheckPlaceable(l, doc); err != nil {
		return nil, err
	}
	now := time.Now()
	p := reconcile.Diff(&doc.Desired, doc, obs, now)
	p.Mode, p.Targets = c.Mode, c.Targets
	p.Amendments, p.Costs, p.Running, p.MoneyBudgets = amendments, planchange.Costs(&doc.Desired, p, obs), running(ctx, amended, p, now), accounting.Outlook(&doc.Desired, p, now)
	p.Schedules = planchange.Schedules(&doc.Desired, p, now)
	if err := ExplainPlan(ctx, l, p, c, l.Document); err != nil {
		return nil, err
	}
	return p, c.Judge(l, p, amended)
}

// Show prints a plan as text or JSON.
func Show(a *terminal.Terminal, l *configuration.Loaded, p *plan.Plan, asJSON, verbose bool) error {
	if asJSON {
		return render.JSON(a.Stdout, p, render.Meta{
			FrayVersion: release.Version(), Workspace: l.Stack.Workspace, Lineage: l.Document.Lineage, Serial: l.Document.Serial, Revision: l.Document.Revision,
			Applicable: true, Time: time.Now().UTC(),
		})
	}
	if name := l.Stack.Named(); name != "" {
		fmt.Fprintf(a.Stdout, "Workspace %s:\n\n", name)
	}
	return render.Text(a.Stdout, p, render.Options{Color: a.Color(a.Stdout), Width: a.Width(a.Stdout), Verbose: verbose})
}
