package rollout

import (
	"testing"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
	"github.com/fray-ml/fray/terminal"
)

// An apply and a destroy wait for no save that is due only for its interval.
func TestAChangeIsEager(t *testing.T) {
	memory := storetest.NewMemory()
	lease, err := store.Acquire(t.Context(), memory, store.LeaseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	change := &Rollout{
		Options: &Options{}, Change: &proposal.Change{},
		Loaded: &configuration.Loaded{Stack: &stack.Stack{Store: memory}, Config: &schema.Config{}},
	}
	r := &leaseRun{run: newRun(change), lease: lease}
	r.progress = progress.New(terminal.New(nil, nil, nil))
	if cfg := r.stepperConfig(nil); !cfg.Eager || !cfg.Events {
		t.Errorf("got eager %v, events %v, want both", cfg.Eager, cfg.Events)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
