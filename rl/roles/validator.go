package roles

import (
	"context"
	"fmt"
	"sync"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/optional"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/rl/validation"
)

// MetricLogger has the metrics of a validation logged at the run's present step; once, if the validation has a name.
type MetricLogger interface {
	LogMetrics(ctx context.Context, measured validation.Measured) error
}

// ValidatorConfig is of the actor validator.
type ValidatorConfig struct {
	Loader  LoaderStatus // validate_dataloader
	Metrics MetricLogger
	Journal record.Journal // nil: nothing outlives the process
	Records [][]byte       // of the journal, as it was opened
}

// Validator is the actor of a validator. Its exported methods are what can be called.
type Validator struct {
	loader    LoaderStatus
	metrics   MetricLogger
	measuring chan struct{} // has room for the one who measures

	mu      sync.Mutex
	machine validation.Validator
	record  record.Recorder
}

// validatorCommand is a change of a validator, as its journal has it: a trajectory, a validation that was measured, or
// that all was cleared.
type validatorCommand struct {
	Put      *validation.Header   `json:"put,omitempty"`
	Measured *validation.Measured `json:"measured,omitempty"`
}

// NewValidator returns the actor, in the state that its journal has.
func NewValidator(cfg ValidatorConfig) (*Validator, error) {
	v := &Validator{
		loader: cfg.Loader, metrics: cfg.Metrics, measuring: make(chan struct{}, 1), record: record.Recorder{Journal: cfg.Journal, Slack: 8 << 20},
	}
	restore := func(state validation.State, _ [][]byte) error {
		v.machine.Restore(state)
		return nil
	}
	if err := record.Replay(cfg.Records, restore, v.apply); err != nil {
		return nil, fmt.Errorf("validator: %w", err)
	}
	return v, v.compact()
}

func (v *Validator) compact() error {
	records, err := record.Snapshot(v.machine.Snapshot(), nil)
	if err != nil {
		return err
	}
	v.record.Rewrite(records)
	return nil
}

// apply carries a change out, as it is made and as it is replayed.
func (v *Validator) apply(c validatorCommand, _ []byte) error {
	switch {
	case c.Put != nil:
		v.machine.Put(*c.Put)
	case c.Measured != nil:
		v.machine.Settle(*c.Measured)
	default:
		v.machine.Clear()
	}
	return nil
}

// change carries a change out, records it and waits until it is durable.
func (v *Validator) change(c validatorCommand) error {
	v.mu.Lock()
	err := v.apply(c, nil)
	var at journal.Position
	if err == nil {
		at, err = v.note(c)
	}
	v.mu.Unlock()
	if err != nil {
		return err
	}
	return v.record.Wait(at)
}

func (v *Validator) note(c validatorCommand) (journal.Position, error) {
	if v.record.Journal == nil {
		return 0, nil
	}
	record, err := record.Command(c, nil)
	if err != nil {
		return 0, err
	}
	v.record.Add(record)
	if v.record.IsLong(0) {
		if err := v.compact(); err != nil {
			return 0, err
		}
	}
	return v.record.Last, nil
}

// PutTrajectory keeps a trajectory's scores: always "success". The payload is not kept. Of the header,
// validation.HeaderOf has what is read.
func (v *Validator) PutTrajectory(header map[string]any, _ []byte) (rl.Outcome, error) {
	read := validation.HeaderOf(header)
	return rl.Success, v.change(validatorCommand{Put: &read})
}

// IsComplete reports whether every validation task is rolled out.
func (v *Validator) IsComplete(ctx context.Context) (bool, error) {
	status, err := v.loader.Status(ctx)
	if err != nil {
		return false, fmt.Errorf("read the validation loader's status: %w", err)
	}
	return validation.IsComplete(status), nil
}

// ComputeAndLogMetrics returns the means of the scores, logs them and clears the trajectories. A name of the validation may
// follow: asked again by it, since an answer was lost, the metrics are the same, until Clear or the next validation.
func (v *Validator) ComputeAndLogMetrics(ctx context.Context, more ...any) (map[string]float64, error) {
	id, err := optional.Arguments(more).Text(0, "validation")
	if err != nil {
		return nil, err
	}
	if err := v.measure(ctx); err != nil {
		return nil, err
	}
	defer v.measured()
	v.mu.Lock()
	result, isSettled, err := v.machine.Measure(id)
	at := v.record.Last
	v.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if isSettled {
		return result.Metrics, v.record.Wait(at)
	}
	if err := v.metrics.LogMetrics(ctx, result); err != nil {
		return nil, fmt.Errorf("log the metrics of the validation: %w", err)
	}
	return result.Metrics, v.change(validatorCommand{Measured: &result})
}

// Clear forgets all trajectories and metrics, as another validation begins.
func (v *Validator) Clear(ctx context.Context) error {
	if err := v.measure(ctx); err != nil {
		return err
	}
	defer v.measured()
	return v.change(validatorCommand{})
}

// measure has the caller be the only one who measures or clears, until measured.
func (v *Validator) measure(ctx context.Context) error {
	select {
	case v.measuring <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (v *Validator) measured() { <-v.measuring }

// ValidatorOptions are how the actor is served.
func ValidatorOptions() host.Options {
	safe := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"is_complete": safe, "clear": safe, "health_check": safe,
	}}
}
