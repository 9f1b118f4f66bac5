package rollout

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// unlock finishes a rekey that died, and returns the providers.
func (r *Rollout) unlock(soft context.Context, lease *store.Held) (map[schema.ProviderName]providers.Provider, error) {
	if err := r.Loaded.Stack.Keys.CheckUnchanged(soft); err != nil {
		return nil, terminal.Interrupted(soft, err)
	}
	w := apply.Rewriter{Store: r.Loaded.Stack.Store, Version: release.Version(), Epoch: lease.Epoch(), Valid: lease.Valid}
	if err := r.Loaded.Stack.FinishRekey(lease.Context(), w); err != nil {
		return nil, err
	}
	return r.Loaded.Stack.Providers(soft, r.Loaded.Desired.Providers, r.Loaded.Document)
}

// prepare makes the stepper, and checks that the state which it has read may be
// changed from here.
func (r *Rollout) prepare(soft context.Context, lease *store.Held, all map[schema.ProviderName]providers.Provider) (*apply.Stepper, error) {
	stepper, err := apply.New(soft, apply.Config{
		Store: r.Loaded.Stack.Store, Providers: all, Version: release.Version(),
		Epoch: lease.Epoch(), Valid: lease.Valid, Parallelism: r.Options.Parallelism, Events: true,
		Certify: clusterkeys.NewIssuer(r.Loaded.Stack.Store, lease.Epoch()).Certify,
		OnStep:  r.progress.Step,
		OnError: r.progress.Failed,
		Refine:  r.Loaded.Refine(r.narrowing()),
	})
	if err != nil {
		return nil, terminal.Interrupted(soft, err)
	}
	r.Loaded.Document = stepper.Document()
	if r.saved != nil {
		if err := r.saved(r.Loaded.Document); err != nil {
			return nil, err
		}
	}
	if err := r.Loaded.Stack.CheckHere(r.Loaded.Document); err != nil {
		return nil, err
	}
	if r.Loaded.Document.Paused != nil {
		return nil, errors.New(pause.Text(r.Loaded.Document.Paused))
	}
	return stepper, nil
}

// propose returns what is to be accepted, and the plan of it.
func (r *Rollout) propose(soft context.Context, stepper *apply.Stepper) (*state.Document, *plan.Plan, error) {
	doc, err := r.Change.Amender.MarkImports(soft, r.Loaded.Document, r.Executor.Accept)
	if err != nil {
		return nil, nil, err
	}
	amended, amendments, err := r.Change.Amender.Amend(soft, doc)
	if err != nil {
		return nil, nil, terminal.Interrupted(soft, err)
	}
	r.failedBefore = failedAttempts(amended)
	accepted := proposal.Accept(soft, r.Loaded, r.Change, amended)
	accepted.LocalPlace = r.Loaded.Stack.Place()
	if err := proposal.CheckPlaceable(r.Loaded, accepted); err != nil {
		return nil, nil, err
	}
	p, err := stepper.Preview(soft, &accepted.Desired, accepted)
	if err != nil {
		return nil, nil, terminal.Interrupted(soft, err)
	}
	p.Amendments = amendments
	if err := proposal.ExplainPlan(soft, r.Loaded, p, r.Change, doc); err != nil {
		return nil, nil, err
	}
	return accepted, p, nil
}

// accept ships what a confirmed plan needs, and records what was accepted.
func (r *Rollout) accept(soft context.Context, accepted *state.Document, p *plan.Plan) error {
	if err := r.Loaded.Upload(soft, r.progress.Line); err != nil {
		return terminal.Interrupted(soft, err)
	}
	if err := r.ShipAgent(soft, accepted); err != nil {
		return err
	}
	if !r.Change.Keeps {
		var err error
		if accepted.Recorded, err = r.record(soft); err != nil {
			return terminal.Interrupted(soft, err)
		}
	}
	r.scope = r.scopeOf(p)
	r.Executor.SetScope(r.scope)
	if err := r.Executor.Accept(soft, accepted); err != nil {
		return err
	}
	r.sweep(soft, accepted.Recorded)
	return r.Loaded.Stack.Keys.Retire(soft)
}
