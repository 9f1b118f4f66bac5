package configuration

import (
	"context"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
)

// Observe lists what exists once.
func (l *Loaded) Observe(ctx context.Context, mark string) (*plan.Observed, error) {
	all, err := l.Stack.Providers(ctx, l.Desired.Providers, l.Document)
	if err != nil {
		return nil, err
	}
	observer := &apply.Observer{Store: l.Stack.Store, Providers: all}
	return observer.Observe(ctx, mark)
}
