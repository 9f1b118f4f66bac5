package lifecycle

import (
	"cmp"
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// overruling finds the assignment that a slice of an attempt has in place of the attempt's own: a
// newer one, or another one of the same generation. The latter is left by a controller whose
// assignments had not been read when the attempt began. Hosts may run it by now, and the attempt's own
// would not be newer to them: whatever runs is stopped, and the next attempt has a higher generation.
func (d *Attempts) overruling(j *state.Job, a *state.Attempt) (other plan.Assigned, is bool) {
	for _, name := range a.Slices {
		told, assigned := d.Obs.Assignments[name]
		if assigned && (told.Generation > a.Generation || isOther(&told, j, a)) {
			return told, true
		}
	}
	return plan.Assigned{}, false
}

// isOther reports whether an assignment has the generation of an attempt and does not name it.
func isOther(told *plan.Assigned, j *state.Job, a *state.Attempt) bool {
	return told.Generation == a.Generation && (told.Run == nil || told.Run.JobID != j.ID || told.Run.Attempt != a.Number)
}

// overrule stops an attempt of which a slice has another assignment.
func (d *Attempts) overrule(j *state.Job, a *state.Attempt, told *plan.Assigned) {
	addr := j.Spec.Addr
	found := fmt.Sprintf("attempt %d of %s is being stopped, and the state does not have that", a.Number, addr)
	why := cmp.Or(told.Why, "stopped; the controller restarted before it recorded why")
	if run := told.Run; run != nil {
		found = fmt.Sprintf("slice %s has another assignment than attempt %d of %s: attempt %d of %s", told.Slice, a.Number, addr, run.Attempt, run.Job)
		why = fmt.Sprintf("slice %s had another assignment: attempt %d of %s", told.Slice, run.Attempt, run.Job)
	}
	d.Drift(plan.Drift{Kind: plan.DriftAttemptStopped, Addr: addr, Found: found, Then: "it will be ended"})
	d.stopAttempt(addr, schema.TaskKilled, why)
}
