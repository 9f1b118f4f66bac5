package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// overruling finds the assignment that a slice of an attempt has in place of the attempt's own: a
// newer one, another one of the same generation, or an older one that hosts run. The latter two are left
// by a controller whose assignments had not been read when the attempt began. What they name is stopped on
// all hosts before anything else begins there, and the next attempt has a higher generation.
func (d *Attempts) overruling(j *state.Job, a *state.Attempt) (other plan.Assigned, is bool) {
	for _, name := range a.Slices {
		told, assigned := d.Obs.Assignments[name]
		if !assigned {
			continue
		}
		if told.Generation > a.Generation || isOther(&told, j, a) || told.Generation < a.Generation && d.isRun(&told) {
			return told, true
		}
	}
	return plan.Assigned{}, false
}

// isOther reports whether an assignment has the generation of an attempt and does not name it.
func isOther(told *plan.Assigned, j *state.Job, a *state.Attempt) bool {
	return told.Generation == a.Generation && (told.Run == nil || told.Run.JobID != j.ID || told.Run.Attempt != a.Number)
}

// isRun reports whether a host runs a task of an assignment.
func (d *Attempts) isRun(told *plan.Assigned) bool {
	if told.Run == nil {
		return false
	}
	return slices.ContainsFunc(d.Obs.Hosts[told.Slice], func(h plan.Host) bool {
		return h.Task != nil && h.Task.Generation == told.Generation && h.Generation == told.Generation && !h.Task.State.Ended()
	})
}

// overrule stops an attempt of which a slice has another assignment.
func (d *Attempts) overrule(j *state.Job, a *state.Attempt, told *plan.Assigned) {
	addr := j.Spec.Addr
	found := fmt.Sprintf("attempt %d of %s is being stopped, and the state does not have that", a.Number, addr)
	why := cmp.Or(told.Why, "stopped; the controller restarted before it recorded why")
	if run := told.Run; run != nil {
		found = fmt.Sprintf("slice %s is told to run attempt %d of %s, and the state has attempt %d of %s there", told.Slice, run.Attempt, run.Job, a.Number, addr)
		why = fmt.Sprintf("slice %s was told to run attempt %d of %s", told.Slice, run.Attempt, run.Job)
	}
	d.Drift(plan.Drift{Kind: plan.DriftAttemptStopped, Addr: addr, Found: found, Then: "it will be ended"})
	d.stopAttempt(addr, schema.TaskKilled, why)
}
