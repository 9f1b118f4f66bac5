package telemetry

import (
	"context"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// instrumented is a provider whose calls are counted and traced. Its other abilities
// are found by unwrapping it, see [providers.AsUpdater]; updates, which the loop
// makes too, are counted as well.
type instrumented struct {
	providers.Provider
	name    schema.ProviderName
	metrics *metrics
	tracer  *tracer
}

// updating is one that can change slices in place.
type updating struct {
	*instrumented
	updater providers.Updater
}

var (
	_ providers.Provider = (*instrumented)(nil)
	_ providers.Updater  = (*updating)(nil)
)

func instrument(name schema.ProviderName, p providers.Provider, m *metrics, t *tracer) providers.Provider {
	i := &instrumented{Provider: p, name: name, metrics: m, tracer: t}
	if updater, ok := providers.AsUpdater(p); ok {
		return &updating{instrumented: i, updater: updater}
	}
	return i
}

// Unwrap is for what else the provider can do.
func (i *instrumented) Unwrap() providers.Provider { return i.Provider }

func (i *instrumented) watch(ctx context.Context, method, slice string, call func(context.Context) error) error {
	ctx, span := i.tracer.call(ctx, string(i.name), method, slice)
	began := time.Now()
	err := call(ctx)
	i.metrics.asked(i.name, method, time.Since(began), err)
	finishSpan(span, err)
	return err
}

// Inventory lists slices.
func (i *instrumented) Inventory(ctx context.Context, stack string) (inv schema.Inventory, err error) {
	err = i.watch(ctx, "inventory", "", func(ctx context.Context) (err error) {
		inv, err = i.Provider.Inventory(ctx, stack)
		return err
	})
	return inv, err
}

// Get reads a slice.
func (i *instrumented) Get(ctx context.Context, spec schema.SliceSpec) (status schema.SliceStatus, found bool, err error) {
	err = i.watch(ctx, "get", spec.Name, func(ctx context.Context) (err error) {
		status, found, err = i.Provider.Get(ctx, spec)
		return err
	})
	return status, found, err
}

// Create asks for a slice.
func (i *instrumented) Create(ctx context.Context, spec schema.SliceSpec) error {
	return i.watch(ctx, "create", spec.Name, func(ctx context.Context) error { return i.Provider.Create(ctx, spec) })
}

// Delete asks for a slice to go.
func (i *instrumented) Delete(ctx context.Context, spec schema.SliceSpec) error {
	return i.watch(ctx, "delete", spec.Name, func(ctx context.Context) error { return i.Provider.Delete(ctx, spec) })
}

// Update changes a slice in place.
func (u *updating) Update(ctx context.Context, spec schema.SliceSpec) error {
	return u.watch(ctx, "update", spec.Name, func(ctx context.Context) error { return u.updater.Update(ctx, spec) })
}
