package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/state/store"
)

// recorder keeps the configuration of a change in the store.
type recorder struct {
	*Rollout

	reported bool // why the configuration is not recorded
}

func newRecorder(r *Rollout) *recorder { return &recorder{Rollout: r} }

// record keeps the configuration in the store, before the state names it, and
// returns its name; "" where there is none. One that is there is written again:
// it is as young as the apply then, so that no sweep removes it.
func (r *recorder) record(ctx context.Context) (string, error) {
	made, err := r.Loaded.Recording(r.Change.Targets)
	if r.unfit(err) {
		return "", nil
	}
	if err != nil || made.Name == "" {
		return "", err
	}
	if _, err := r.Loaded.Stack.Store.Put(ctx, store.ConfigurationKey(made.Name), made.Data, store.Any); err != nil {
		return "", fmt.Errorf("record configuration: %w", err)
	}
	return made.Name, nil
}

// unfit reports whether an error is that the configuration cannot be recorded,
// which is reported once.
func (r *recorder) unfit(err error) bool {
	_, unfit := errors.AsType[configuration.ErrUnrecorded](err)
	if unfit && !r.reported {
		r.reported = true
		r.Terminal.Warn(err.Error())
	}
	return unfit
}

// sweep removes recorded configurations that nothing names any more. What it
// leaves the next one removes.
func (r *recorder) sweep(ctx context.Context, named string) {
	if err := store.SweepConfigurations(ctx, r.Loaded.Stack.Store, named); err != nil && ctx.Err() == nil {
		r.Terminal.Warn(err.Error())
	}
}

// same reports whether the state has the configuration recorded as it is now.
func (r *recorder) same() bool {
	made, err := r.Loaded.Recording(r.Change.Targets)
	_, unfit := errors.AsType[configuration.ErrUnrecorded](err)
	return err != nil && !unfit || made.Name == r.Loaded.Document.Recorded
}
