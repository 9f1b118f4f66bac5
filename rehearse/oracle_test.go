package rehearse

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// An oracle that sees nothing proves nothing: it has to see each of these.
func TestOracleSees(t *testing.T) {
	live := func(r *rehearsal) []*host {
		for _, hosts := range r.fleet.slices {
			return hosts
		}
		return nil
	}
	for rule, do := range map[Rule]func(*rehearsal){
		RuleLive: func(r *rehearsal) { r.oracle.deleting(live(r)[0].spec.Name) },
		RuleOneNode: func(r *rehearsal) {
			copied := live(r)[0].machine
			copied.ID, copied.Zone = "copied", "us-east5-a"
			r.fleet.Start(copied)
		},
		RuleOneRun: func(r *rehearsal) {
			h := live(r)[0]
			again := *h.want.Run
			again.Attempt++
			r.oracle.starting(h, &again)
		},
		RuleForeign: func(r *rehearsal) { r.oracle.touched(&cloud.Group{State: cloud.StateDeleting}) },
		RuleConverges: func(r *rehearsal) {
			r.fleet.mu.Lock()
			defer r.fleet.mu.Unlock()
			for _, h := range r.fleet.machines {
				h.machine.Bad = true // and stays so
			}
			r.oracle.running = map[schema.Address]*gang{}
		},
	} {
		t.Run(string(rule), func(t *testing.T) {
			rep, err := Run(t.Context(), Config{
				Desired: training(1, "v5litepod-8", "us-west4-a"), Scenario: builtIn(t, ScenarioCalm).Cloud, For: 2 * time.Hour,
				connect: func(ctx context.Context, r *rehearsal) (providers.Provider, error) {
					r.clock.AfterFunc(r.start.Add(time.Hour), func() { do(r) })
					return connect(ctx, r)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(rep.Violations, func(v Violation) bool { return v.Rule == rule }) {
				t.Errorf("got %v, want a violation of %q", rep.Violations, rule)
			}
		})
	}
}
