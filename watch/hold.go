package watch

import (
	"errors"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller/admin"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// hold holds the plans that commands hand over to the policies of the directories that
// the flags and the environment name; nil if they name none. The policies beside a stack's
// files are not here, and the command has held the plan to them.
func hold(a *terminal.Terminal, workspace string, opts policies.Options) (admin.Hold, error) {
	if held, err := policies.LoadDirs(a, opts); held == nil || err != nil {
		return nil, err
	}
	return func(doc, next *state.Document, p *plan.Plan, asked apply.Request) error {
		if len(asked.Stop) > 0 { // not a plan of files
			return nil
		}
		held, err := policies.LoadDirs(a, opts) // as they are by now
		if err != nil {
			return err
		}
		var overrides []policy.Override
		if asked.Explanation != nil {
			for _, o := range asked.Explanation.Overrides {
				overrides = append(overrides, policy.Override{Policy: o.Policy, Reason: o.Reason})
			}
		}
		if p.Mode = plan.ModeApply; asked.UnlaunchAll || len(asked.Unlaunch) > 0 {
			p.Mode = plan.ModeDestroy
		}
		r := policy.Request{Targets: asked.Unlaunch, Replace: asked.Replace, Workspace: workspace, Who: policies.Named(asked.By), Time: time.Now().UTC().Truncate(time.Second)}
		if err := held.Overridden(overrides).Judge(p, doc, r); err != nil {
			return err
		}
		denied := &proposal.DeniedError{}
		if errors.As(proposal.CheckPolicies(p), &denied) {
			return errors.New("the controller is started with policies of its own: " + denied.Explained())
		}
		return nil
	}, nil
}
