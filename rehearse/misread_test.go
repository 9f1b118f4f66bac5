package rehearse

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// misread makes a fifth of all lists wrong, and at times all of one kind for over an
// hour.
func misread(s cloud.Scenario, lasts time.Duration) cloud.Scenario {
	s.API.ListFaultRate = 0.2
	faults := cloud.ListFaults()
	for i, at := 0, time.Hour; at < lasts; i, at = i+1, at+100*time.Minute {
		of := []string{"nodes", "", "queuedResources"}[i%3]
		s.Events = append(s.Events, cloud.Scripted{
			At: at, Action: cloud.ActionList, Target: string(faults[i%len(faults)]), List: of, For: 70 * time.Minute,
		})
	}
	return s
}

// TestMisreadLists is half a day of lists that are empty, short, old, out of order or
// poisoned by a copy, with and without other faults: nothing that lives is deleted, each
// slice has one node and each job one attempt at a time, and all comes to run and to
// an end afterwards.
func TestMisreadLists(t *testing.T) {
	lasts := 24 * time.Hour
	seed := seedOf()
	if testing.Short() { // looks for races only
		lasts = 10 * time.Hour
	}
	for name, conditions := range map[string]cloud.Scenario{
		"calm": {Conditions: comingUp(), Zones: conditionsOf(seed, lasts).Zones}, "storm": conditionsOf(seed, lasts),
	} {
		t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
			rep := simulate(t, Config{
				Desired: fleetOf(40), Scenario: misread(conditions, lasts), For: lasts, Seed: seed, Pace: time.Minute, Restarts: 5 * time.Hour,
			})
			for _, job := range rep.Jobs {
				if name == "calm" && job.Restarts > 0 {
					t.Errorf("seed %d: %s began again %d times without faults", seed, job.Job, job.Restarts)
				}
			}
		})
	}
}
