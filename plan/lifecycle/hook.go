package lifecycle

import (
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// stopSlack is what hosts get beyond a hook's time and the grace before the slice of an
// attempt that is being stopped is deleted all the same.
const stopSlack = time.Minute

// stopReason is for what an attempt is stopped whose outcome will be the cause.
func (d *Attempts) stopReason(j *state.Job, cause schema.TaskState) schema.StopReason {
	last := j.Last()
	switch {
	case d.Leaving[j.Spec.Addr]:
		return schema.StopDestroy
	case last.Changed != nil:
		return schema.StopRestart
	case j.Stop, !j.YieldsTo.IsZero(), j.Scheduled != nil && j.Scheduled.Replace:
		return schema.StopRequest
	case cause == schema.TaskPreempted, cause == schema.TaskWorkerFailed:
		return schema.StopPreemption
	}
	return schema.StopRestart
}

// hookGoesFirst reports whether the slices of a job are kept for its hook: until its hosts have
// confirmed that the attempt has ended, or had the time for that.
func (d *Attempts) hookGoesFirst(addr schema.Address, why state.Cause) bool {
	j := d.Next.Jobs[addr]
	hook, last := j.Spec.BeforeStop, j.Last()
	if hook == nil || !j.Running() {
		return false
	}
	if last.StopGeneration == 0 {
		stop := stopOf(why)
		if !hook.RunsOn(stop, 0) {
			return false
		}
		d.Edit(addr).Last().Stop = stop
		return true
	}
	if !hook.RunsOn(last.Stop, 0) {
		return false
	}
	until := last.StoppingSince.Add(time.Duration(hook.Timeout+j.Spec.StopGrace) + stopSlack)
	d.WakeAt(until)
	return d.Now.Before(until)
}

// stopOf is for what an attempt is stopped whose slices go.
func stopOf(why state.Cause) schema.StopReason {
	switch why {
	case state.CauseJobRemoved, state.CauseUndeclared, state.CauseReplaced, state.CauseExpired, state.CauseUnneeded,
		state.CauseReshaped, state.CauseUnused, state.CauseMoved:
		return schema.StopDestroy
	case state.CausePreempted, state.CauseNotice, state.CauseHostBad, state.CauseDead, state.CauseHostLost, state.CauseHostGone:
		return schema.StopPreemption
	case state.CauseNone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown, state.CauseStopped,
		state.CauseEnded, state.CauseNotPlaced, state.CauseYielded, state.CauseMakesRoom, state.CauseIdle, state.CausePlacedAgain:
	}
	return schema.StopRequest
}
