package plan

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// terminated is why a slice goes once a later cause was found. What happened to it
// by itself counts for more than what was decided about it, and either by the order
// of [state.Causes]; of equals the first stays, with its text. But what the deletion
// of a slice leads to is no news of one whose deletion was decided. The decision
// that counts for most is kept in any case: decisions about zones and room read it.
func terminated(was, later state.Termination) state.Termination {
	is, decision := was, weightier(was.Decided(), later.Decided())
	if outranks(later.Cause, was.Cause) {
		is.Cause, is.Text = later.Cause, later.Text
	}
	if is.Decision = decision; is.Cause.IsDecision() {
		is.Decision = state.CauseNone
	}
	return is
}

// outranks reports whether a later cause replaces an earlier one.
func outranks(later, earlier state.Cause) bool {
	if earlier.IsDecision() && followsDeletion(later) {
		return false
	}
	return rank(later) < rank(earlier)
}

// rank is the place of a cause in their order, none being the last.
func rank(c state.Cause) int {
	all := state.Causes()
	if i := slices.Index(all, c); i >= 0 {
		return i
	}
	return len(all)
}

func weightier(a, b state.Cause) state.Cause {
	if rank(b) < rank(a) {
		return b
	}
	return a
}

// followsDeletion reports whether the deletion of a slice has such a cause be found,
// too: its hosts fall silent, and some providers list it as dead before it is gone.
func followsDeletion(c state.Cause) bool {
	switch c {
	case state.CauseDead, state.CauseHostLost, state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell:
		return true
	case state.CauseNone, state.CausePreempted, state.CauseHostBad, state.CauseNotice, state.CauseJobRemoved, state.CauseUndeclared,
		state.CauseExpired, state.CauseStopped, state.CauseEnded, state.CauseYielded, state.CauseMoved, state.CauseReplaced,
		state.CauseNotPlaced, state.CauseMakesRoom, state.CauseIdle, state.CausePlacedAgain, state.CauseReshaped,
		state.CauseUnneeded, state.CauseUnused, state.CauseUnknown:
	}
	return false
}

// decided is why a slice goes by a decision.
func decided(c state.Cause) state.Termination {
	return state.Termination{Cause: c, Text: decisionText(c)}
}

func decisionText(c state.Cause) string {
	switch c {
	case state.CauseJobRemoved:
		return "it is no longer declared"
	case state.CauseUndeclared:
		return "it is not declared any more"
	case state.CauseExpired:
		return "the time of its reservation is over"
	case state.CauseStopped:
		return "stopped by request"
	case state.CauseEnded:
		return "it has ended"
	case state.CauseYielded:
		return "it yields to a job of a higher band"
	case state.CauseMoved:
		return "its job moves to where all of it can be"
	case state.CauseReplaced:
		return "it is being replaced"
	case state.CauseNotPlaced:
		return "what it belongs to could not be placed whole"
	case state.CauseMakesRoom:
		return "it idled, and others need the room"
	case state.CauseIdle:
		return "it idled for long enough"
	case state.CausePlacedAgain:
		return "its job is placed again"
	case state.CauseReshaped:
		return "its shape changed"
	case state.CauseUnneeded:
		return "it is not needed any more"
	case state.CauseUnused:
		return "nothing declared uses it"
	case state.CauseNone, state.CausePreempted, state.CauseHostBad, state.CauseNotice, state.CauseDead, state.CauseHostLost,
		state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown:
	}
	return ""
}

// died is why a slice goes that its provider lists as dead.
func (d *differ) died(st *schema.SliceStatus) state.Termination {
	why := state.Termination{Cause: state.CauseDead, Text: "it is dead: " + st.Reason}
	s := d.next.Slices[st.Spec.Name]
	if st.Cause == schema.ErrorPreempted || s != nil && s.Taken {
		why.Cause = state.CausePreempted
	}
	return why
}

// terminate records that a slice is to go, whichever job wants it, and why.
func (d *differ) terminate(name string, why state.Termination) {
	s := d.next.Slices[name]
	if s == nil {
		return
	}
	if is := terminated(s.Terminating, why); is != s.Terminating {
		d.editSlice(name).Terminating = is
	}
}

func (d *differ) isTerminating(name string) bool {
	s := d.next.Slices[name]
	return s != nil && !s.Terminating.IsZero()
}

// leavesZone reports whether by a decision about its slices a job is not to have
// them again in the zone where they are.
func leavesZone(decision state.Cause) bool {
	switch decision {
	case state.CauseMoved, state.CauseNotPlaced, state.CauseReplaced:
		return true
	case state.CauseNone, state.CausePreempted, state.CauseHostBad, state.CauseNotice, state.CauseDead, state.CauseHostLost,
		state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown, state.CauseJobRemoved,
		state.CauseUndeclared, state.CauseExpired, state.CauseStopped, state.CauseEnded, state.CauseYielded, state.CauseMakesRoom,
		state.CauseIdle, state.CausePlacedAgain, state.CauseReshaped, state.CauseUnneeded, state.CauseUnused:
	}
	return false
}

// freesRoom reports whether by a decision about a slice nothing takes its place.
func freesRoom(decision state.Cause) bool {
	switch decision {
	case state.CauseMakesRoom, state.CauseIdle, state.CauseUnneeded, state.CauseUndeclared, state.CauseExpired:
		return true
	case state.CauseNone, state.CausePreempted, state.CauseHostBad, state.CauseNotice, state.CauseDead, state.CauseHostLost,
		state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown, state.CauseJobRemoved,
		state.CauseStopped, state.CauseEnded, state.CauseYielded, state.CauseMoved, state.CauseReplaced, state.CauseNotPlaced,
		state.CausePlacedAgain, state.CauseReshaped, state.CauseUnused:
	}
	return false
}
