package lifecycle

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Attempts decides what becomes of attempts: adopted, observed, ended, released.
type Attempts struct {
	*Slices

	Settled []schema.Address // jobs that wait no more, unless waits name them
}

// stopAndReportStopped ends a job's attempt in place and reports whether none runs any more.
func (d *Attempts) stopAndReportStopped(addr schema.Address, why string) bool {
	if d.Next.Jobs[addr].Running() {
		d.stopAttempt(addr, schema.TaskKilled, why)
	}
	return !d.Next.Jobs[addr].Running()
}

// releaseReplacedSlices gives up the slices of a job in the place of which it has others.
func (d *Attempts) releaseReplacedSlices(j *state.Job, by []string) {
	for _, name := range j.Slices {
		if s := d.Next.Slices[name]; s != nil && s.Spec.Owner == j.Spec.Addr && !slices.Contains(by, name) {
			d.terminate(name, state.Termination{Cause: state.CauseReplaced, Text: "it was replaced"})
		}
	}
}
