package main

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// unlock finishes a rekey that died, and returns the providers.
func (r *runner) unlock(soft context.Context, lease *store.Held) (map[schema.ProviderName]providers.Provider, error) {
	if err := r.l.stack.keys.unchanged(soft); err != nil {
		return nil, untouched(soft, err)
	}
	w := apply.Rewriter{Store: r.l.stack.store, Version: toolVersion(), Epoch: lease.Epoch(), Valid: lease.Valid}
	if err := r.l.stack.finishRekey(lease.Context(), w); err != nil {
		return nil, err
	}
	return r.l.stack.providers(soft, r.l.desired.Providers, r.l.doc)
}

// prepare makes the stepper, and checks that the state which it has read may be
// changed from here.
func (r *runner) prepare(soft context.Context, lease *store.Held, all map[schema.ProviderName]providers.Provider) (*apply.Stepper, error) {
	stepper, err := apply.New(soft, apply.Config{
		Store: r.l.stack.store, Providers: all, Version: toolVersion(),
		Epoch: lease.Epoch(), Valid: lease.Valid, Parallelism: r.flags.parallelism, Events: true,
		Certify: clusterkeys.NewIssuer(r.l.stack.store, lease.Epoch()).Certify,
		OnStep:  r.progress.step,
		OnError: r.progress.failed,
		Refine:  r.l.refine(r.narrowing()),
	})
	if err != nil {
		return nil, untouched(soft, err)
	}
	r.l.doc = stepper.Document()
	if r.saved != nil {
		if err := r.saved(r.l.doc); err != nil {
			return nil, err
		}
	}
	if err := r.l.stack.here(r.l.doc); err != nil {
		return nil, err
	}
	if r.l.doc.Paused != nil {
		return nil, errors.New(controller.PausedText(r.l.doc.Paused))
	}
	return stepper, nil
}

// propose returns what is to be accepted, and the plan of it.
func (r *runner) propose(soft context.Context, stepper *apply.Stepper) (*state.Document, *plan.Plan, error) {
	doc, err := r.c.amender.takeOver(soft, r.l.doc, r.stepper.Accept)
	if err != nil {
		return nil, nil, err
	}
	amended, amendments, err := r.c.amender.amend(soft, doc)
	if err != nil {
		return nil, nil, untouched(soft, err)
	}
	r.failedBefore = failedAttempts(amended)
	accepted := r.l.accept(soft, r.c, amended)
	accepted.LocalPlace = r.l.stack.place()
	if err := r.l.impossible(accepted); err != nil {
		return nil, nil, err
	}
	p, err := stepper.Preview(soft, &accepted.Desired, accepted)
	if err != nil {
		return nil, nil, untouched(soft, err)
	}
	p.Amendments = amendments
	if err := r.l.explain(soft, p, r.c, doc); err != nil {
		return nil, nil, err
	}
	return accepted, p, nil
}

// accept ships what a confirmed plan needs, and records what was accepted.
func (r *runner) accept(soft context.Context, accepted *state.Document, p *plan.Plan) error {
	if err := r.l.upload(soft, r.progress.line); err != nil {
		return untouched(soft, err)
	}
	if err := r.shipAgent(soft, accepted); err != nil {
		return err
	}
	if !r.c.keeps {
		var err error
		if accepted.Recorded, err = r.record(soft); err != nil {
			return untouched(soft, err)
		}
	}
	r.scope = r.scopeOf(p)
	r.stepper.SetScope(r.scope)
	if err := r.stepper.Accept(soft, accepted); err != nil {
		return err
	}
	r.sweep(soft, accepted.Recorded)
	return r.l.stack.keys.retire(soft)
}
