package apply

import (
	"context"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Refresh observes and returns the plan that records what is within, everything where that
// is nil, and does nothing. It observes again what the lists leave in doubt.
func (o *Observer) Refresh(ctx context.Context, doc *state.Document, within func(schema.Address) bool) (*plan.Plan, error) {
	for look := 0; ; look++ {
		obs, err := o.Observe(ctx, doc.Stack())
		if err != nil {
			return nil, err
		}
		p := reconcile.Refresh(doc, obs, o.now(), within)
		o.Doubt(p.Doubts)
		if look > 0 || !slices.ContainsFunc(p.Doubts, func(d plan.Doubt) bool { return d.Open }) {
			return p, nil
		}
	}
}

// Refresh is [Observer.Refresh] of the stepper's own document.
func (s *Stepper) Refresh(ctx context.Context, within func(schema.Address) bool) (*plan.Plan, error) {
	return s.observer.Refresh(ctx, s.doc, within)
}

// Record makes what a plan of Refresh found the state, and saves it with its events. It
// takes no action.
func (s *Stepper) Record(ctx context.Context, p *plan.Plan) error {
	s.doc, s.last = p.Next, p
	s.note(p)
	return s.Save(ctx)
}
