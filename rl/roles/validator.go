package roles

import (
	"context"
	"fmt"
	"sync"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/validation"
)

// MetricLogger has metrics logged at the run's present step.
type MetricLogger interface {
	LogMetrics(ctx context.Context, metrics map[string]float64) error
}

// ValidatorConfig is of the actor validator.
type ValidatorConfig struct {
	Loader  LoaderStatus // validate_dataloader
	Metrics MetricLogger
	Journal Journal  // nil: nothing outlives the process
	Records [][]byte // of the journal, as it was opened
}

// Validator is the actor of a validator. Its exported methods are what can be called.
type Validator struct {
	loader  LoaderStatus
	metrics MetricLogger

	mu      sync.Mutex
	machine validation.Validator
	record  recorder
}

// validatorCommand is a change of a validator, as its journal has it: a trajectory, or that all were cleared.
type validatorCommand struct {
	Put *validation.Header `json:"put,omitempty"` // nil: clear
}

// NewValidator returns the actor, in the state that its journal has.
func NewValidator(cfg ValidatorConfig) (*Validator, error) {
	v := &Validator{loader: cfg.Loader, metrics: cfg.Metrics, record: recorder{journal: cfg.Journal, slack: 8 << 20}}
	restore := func(state validation.State, _ [][]byte) error {
		v.machine.Restore(state)
		return nil
	}
	if err := replay(cfg.Records, restore, v.apply); err != nil {
		return nil, fmt.Errorf("validator: %w", err)
	}
	return v, v.compact()
}

func (v *Validator) compact() error {
	records, err := snapshotRecords(v.machine.Snapshot(), nil)
	if err != nil {
		return err
	}
	v.record.rewrite(records)
	return nil
}

func (v *Validator) apply(c validatorCommand, _ []byte) error {
	if c.Put == nil {
		v.machine.Clear()
	} else {
		v.machine.Put(*c.Put)
	}
	return nil
}

func (v *Validator) note(c validatorCommand) (journal.Position, error) {
	if v.record.journal == nil {
		return 0, nil
	}
	record, err := commandRecord(c, nil)
	if err != nil {
		return 0, err
	}
	v.record.add(record)
	if v.record.isLong(0) {
		if err := v.compact(); err != nil {
			return 0, err
		}
	}
	return v.record.last, nil
}

// PutTrajectory keeps a trajectory's scores: always "success". The payload is not kept. Of the header,
// validation.HeaderOf has what is read.
func (v *Validator) PutTrajectory(header map[string]any, _ []byte) (rl.Outcome, error) {
	read := validation.HeaderOf(header)
	v.mu.Lock()
	outcome := v.machine.Put(read)
	at, err := v.note(validatorCommand{Put: &read})
	v.mu.Unlock()
	if err != nil {
		return "", err
	}
	return outcome, v.record.wait(at)
}

// IsComplete reports whether every validation task is rolled out.
func (v *Validator) IsComplete(ctx context.Context) (bool, error) {
	status, err := v.loader.Status(ctx)
	if err != nil {
		return false, fmt.Errorf("read the validation loader's status: %w", err)
	}
	return validation.IsComplete(status), nil
}

// ComputeAndLogMetrics returns the means of the scores, logs them and clears the trajectories.
func (v *Validator) ComputeAndLogMetrics(ctx context.Context) (map[string]float64, error) {
	v.mu.Lock()
	before := v.machine.Snapshot()
	metrics, err := v.machine.Metrics()
	v.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := v.metrics.LogMetrics(ctx, metrics); err != nil {
		v.mu.Lock()
		v.machine.Restore(before) // so that they can be asked for again
		v.mu.Unlock()
		return nil, fmt.Errorf("log the metrics of the validation: %w", err)
	}
	v.mu.Lock()
	at, err := v.note(validatorCommand{})
	v.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return metrics, v.record.wait(at)
}

// Clear forgets all trajectories.
func (v *Validator) Clear() error {
	v.mu.Lock()
	v.machine.Clear()
	at, err := v.note(validatorCommand{})
	v.mu.Unlock()
	if err != nil {
		return err
	}
	return v.record.wait(at)
}

// ValidatorOptions are how the actor is served.
func ValidatorOptions() host.Options {
	safe := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{"is_complete": safe, "clear": safe}}
}
