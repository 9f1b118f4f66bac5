package savedplan

import (
	"context"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

// setOrigin notes what a plan was made from: files and the values of variables, or the
// state alone.
func (sp *Plan) setOrigin(l *configuration.Loaded, c *proposal.Change) error {
	if c.Mode != plan.ModeApply {
		sp.Dir = l.Site.Dir
		if c.Mode == plan.ModeDestroy {
			sp.Targets = c.Unlaunch
		}
		return nil
	}
	flags, err := saveFlags(l.Options, l.Config.Ephemeral, l.Sealer)
	sp.Flags, sp.Settings = flags, l.Config.Settings
	sp.ConfigDigest, sp.Files = l.Source.Digest(), fileDigests(l.Source)
	return err
}

// openState finds the stack of a plan that only the state decides. What its files have
// become meanwhile is nothing to it.
func (sp *Plan) openState(ctx context.Context, path string, flags configuration.Options) (*configuration.Loaded, *proposal.Change, error) {
	if len(flags.Given) > 0 {
		return nil, nil, fmt.Errorf("%s reads no variables: leave out --var and --var-file", path)
	}
	if err := sp.checkVersion(path); err != nil {
		return nil, nil, err
	}
	where, st, err := sp.openStack(ctx, path, sp.Dir, flags.Workspace)
	if err != nil {
		return nil, nil, err
	}
	l := &configuration.Loaded{Site: where, Stack: st, Config: &schema.Config{}, Bundles: map[string]string{}, Paths: sp.Paths}
	if l.Document, err = st.Load(ctx); err != nil {
		return nil, nil, err
	}
	if l.Sealer, err = st.Sealer(ctx, l.Document, false); err != nil {
		return nil, nil, err
	}
	l.Desired = l.Document.Desired
	return l, proposal.OfState(l, sp.Mode, sp.Targets), nil
}

// openStack opens the stack of a plan, with the directory of its configuration.
func (sp *Plan) openStack(ctx context.Context, path, dir, workspace string) (stack.Site, *stack.Stack, error) {
	where, err := stack.SiteOf(dir, sp.Settings, workspace)
	if err != nil {
		return where, nil, err
	}
	if where.Workspace != sp.Workspace {
		return where, nil, fmt.Errorf("%s was made for workspace %q, and this is workspace %q; to apply it there: fray apply --workspace=%s %s",
			path, sp.Workspace, where.Workspace, sp.Workspace, terminal.ShellQuote(path))
	}
	st, err := stack.Open(ctx, where, sp.Serial == 0)
	if err != nil {
		return where, nil, err
	}
	if st.Fresh {
		return where, nil, fmt.Errorf("%s %w: the state it was made for (serial %d) is not in %s any more%s", path, errStale, sp.Serial, st.At, sp.again(path))
	}
	return where, st, nil
}

func (sp *Plan) checkVersion(path string) error {
	if sp.FrayVersion == release.Version() {
		return nil
	}
	return fmt.Errorf("%s was made by fray %s and this is %s%s", path, sp.FrayVersion, release.Version(), sp.again(path))
}

// CheckFound rejects a plan that records what was observed, if something else is observed
// now.
func (sp *Plan) CheckFound(path string, p *plan.Plan) error {
	if slices.Equal(sp.Shown.Drift, p.Drift) {
		return nil
	}
	return fmt.Errorf("%s %w: something else is observed now than when it was made%s", path, errStale, sp.again(path))
}

// again is how to make such a plan anew, as the end of a message.
func (sp *Plan) again(path string) string {
	mode := ""
	if sp.Mode != plan.ModeApply {
		mode = " --" + string(sp.Mode)
	}
	return fmt.Sprintf("; make a new plan with fray plan%s --out=%s", mode, terminal.ShellQuote(path))
}
