package lifecycle

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Terminated is why a slice goes once a later cause was found. What happened to it
// by itself counts for more than what was decided about it, and either by the order
// of [state.Causes]; of equals the first stays, with its text. But what the deletion
// of a slice leads to is no news of one whose deletion was decided. The decision
// that counts for most is kept in any case: decisions about zones and room read it.
func Terminated(was, later state.Termination) state.Termination {
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
	if earlier.IsDecision() && FollowsDeletion(later) {
		return false
	}
	return Rank(later) < Rank(earlier)
}

// Rank is the place of a cause in their order, none being the last.
func Rank(c state.Cause) int {
	all := state.Causes()
	if i := slices.Index(all, c); i >= 0 {
		return i
	}
	return len(all)
}

func weightier(a, b state.Cause) state.Cause {
	if Rank(b) < Rank(a) {
		return b
	}
	return a
}

// FollowsDeletion reports whether the deletion of a slice has such a cause be found,
// too: its hosts fall silent, and some providers list it as dead before it is gone.
func FollowsDeletion(c state.Cause) bool {
	switch c {
	case state.CauseDead, state.CauseHostLost, state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell:
		return true
	case state.CauseNone, state.CausePreempted, state.CauseHostBad, state.CauseNotice, state.CauseJobRemoved, state.CauseUndeclared,
		state.CauseExpired, state.CauseStopped, state.CauseEnded, state.CauseBudget, state.CauseYielded, state.CauseMoved, state.CauseReplaced,
		state.CauseNotPlaced, state.CauseMakesRoom, state.CauseIdle, state.CausePlacedAgain, state.CauseReshaped,
		state.CauseUnneeded, state.CauseUnused, state.CauseUnknown:
	}
	return false
}

// died is why a slice goes that its provider lists as dead.
func (d *Slices) died(st *schema.SliceStatus) state.Termination {
	why := state.Termination{Cause: state.CauseDead, Text: "it is dead: " + st.Reason}
	s := d.Next.Slices[st.Spec.Name]
	if st.Cause == schema.ErrorPreempted || s != nil && s.Preempted {
		why.Cause = state.CausePreempted
	}
	return why
}

// terminate records that a slice is to go, whichever job wants it, and why.
func (d *Slices) terminate(name string, why state.Termination) {
	s := d.Next.Slices[name]
	if s == nil {
		return
	}
	if is := Terminated(s.Terminating, why); is != s.Terminating {
		d.EditSlice(name).Terminating = is
	}
}

func (d *Slices) isTerminating(name string) bool {
	s := d.Next.Slices[name]
	return s != nil && !s.Terminating.IsZero()
}

// freesRoom reports whether by a decision about a slice nothing takes its place.
func freesRoom(decision state.Cause) bool {
	switch decision {
	case state.CauseMakesRoom, state.CauseIdle, state.CauseUnneeded, state.CauseUndeclared, state.CauseExpired:
		return true
	case state.CauseNone, state.CausePreempted, state.CauseHostBad, state.CauseNotice, state.CauseDead, state.CauseHostLost,
		state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown, state.CauseJobRemoved,
		state.CauseStopped, state.CauseEnded, state.CauseBudget, state.CauseYielded, state.CauseMoved, state.CauseReplaced, state.CauseNotPlaced,
		state.CausePlacedAgain, state.CauseReshaped, state.CauseUnused:
	}
	return false
}
