package rehearse

import (
	"context"
	"errors"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// emulate sets the cloud up.
func (r *rehearsal) emulate() {
	r.emulator = emulator.New(emulator.Config{Cloud: cloud.Config{
		Scenario: r.cfg.Scenario, Clock: r.clock, Hosts: r.fleet, Project: r.project(),
	}})
	r.cloud = r.emulator.Cloud()
}

// close ends all connections.
func (r *rehearsal) close() error {
	errs := []error{r.hangUp()}
	if r.emulator != nil {
		errs = append(errs, r.emulator.Close())
	}
	return errors.Join(errs...)
}

// hangUp closes the provider.
func (r *rehearsal) hangUp() error {
	if r.gate == nil {
		return nil
	}
	if closer, ok := r.gate.Provider.(interface{ Close() error }); ok {
		return closer.Close()
	}
	return nil
}

// retryAfter is how soon a read that failed is tried again: the clock stands
// meanwhile, so that waiting is for nothing.
const retryAfter = time.Millisecond

// connect makes a real provider that calls the emulator in this process.
func connect(ctx context.Context, r *rehearsal) (providers.Provider, error) {
	p, err := gcp.New(ctx, gcp.Config{
		Project: r.project(), Local: &gcp.Local{RPC: r.emulator.RPC(), REST: r.emulator.REST()}, Now: r.clock.Now,
		CreatesPerMinute: r.cfg.CreatesPerMinute, Backoff: retryAfter,
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// project is the one that everything happens in.
func (r *rehearsal) project() string {
	for i := range r.cfg.Desired.Providers {
		if p := &r.cfg.Desired.Providers[i]; p.Name == schema.ProviderGCP && p.Project != "" {
			return p.Project
		}
	}
	return "rehearsal"
}
