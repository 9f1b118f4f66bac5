package state

// Termination is why a slice is to be deleted, whichever job wants it. The zero
// value is that of a slice that is to stay.
type Termination struct {
	// Cause is what matters most of all that was found.
	Cause Cause `json:"cause"`
	// Decision is what was decided about the slice, where Cause is what happened
	// to it by itself; "": nothing, or Cause is the decision.
	Decision Cause `json:"decision,omitempty"`
	// Text says the same for people; nothing decides by it.
	Text string `json:"text"`
}

// IsZero reports whether the slice is to stay.
func (t Termination) IsZero() bool { return t == Termination{} }

// Decided is what was decided about the slice, CauseNone if nothing was.
func (t Termination) Decided() Cause {
	if t.Cause.IsDecision() {
		return t.Cause
	}
	return t.Decision
}

// Cause is a closed set of what has a slice deleted.
type Cause string

// What happened to a slice by itself.
const (
	CauseNone       Cause = ""
	CausePreempted  Cause = "preempted"         // its provider took its machines away
	CauseHostBad    Cause = "host_bad"          // a task found its host broken
	CauseNotice     Cause = "preemption_notice" // a host has notice of preemption
	CauseDead       Cause = "dead"              // its provider reports it as dead
	CauseHostLost   Cause = "host_lost"         // a host has not reported for too long
	CauseHostGone   Cause = "host_slice_gone"   // of a packed slice: the slice on which it was is gone
	CauseBoot       Cause = "boot_overdue"      // its hosts did not report in time
	CauseQueue      Cause = "queue_overdue"     // it waited in the cloud's queue for too long
	CauseIdleUnwell Cause = "idle_unwell"       // it idled, and a host is down, lost or has notice
	CauseUnknown    Cause = "unknown"           // an older fray recorded only a text
)

// What was decided about a slice.
const (
	CauseJobRemoved  Cause = "job_removed"  // the job that holds it is declared no more
	CauseUndeclared  Cause = "undeclared"   // no job holds it, and its owner is declared no more
	CauseExpired     Cause = "expired"      // the time of its reservation is over
	CauseStopped     Cause = "stopped"      // its job was stopped by request
	CauseBudget      Cause = "budget"       // its job is stopped until its namespace may cost more
	CauseEnded       Cause = "ended"        // its job has ended
	CauseMoved       Cause = "moved"        // its job moves to another zone
	CauseReplaced    Cause = "replaced"     // its job is being replaced
	CauseNotPlaced   Cause = "not_placed"   // what it belongs to could not be placed whole
	CauseYielded     Cause = "yielded"      // its job makes room for one of a higher band
	CauseMakesRoom   Cause = "makes_room"   // it idled, and others need the room
	CauseIdle        Cause = "idle"         // it idled for long enough
	CausePlacedAgain Cause = "placed_again" // its packed job is placed again
	CauseUnneeded    Cause = "unneeded"     // what it belongs to needs fewer
	CauseUnused      Cause = "unused"       // nothing declared uses it
	CauseReshaped    Cause = "reshaped"     // it is to have another shape
)

// Causes are all of them, CauseNone left out, those that matter most first.
func Causes() []Cause {
	return []Cause{
		CausePreempted, CauseHostBad, CauseNotice, CauseDead, CauseHostLost, CauseHostGone, CauseBoot, CauseQueue, CauseIdleUnwell,
		CauseJobRemoved, CauseUndeclared, CauseExpired, CauseStopped, CauseEnded, CauseMoved, CauseReplaced, CauseNotPlaced,
		CauseBudget, CauseYielded, CauseMakesRoom, CauseIdle, CausePlacedAgain, CauseUnneeded, CauseUnused, CauseReshaped, CauseUnknown,
	}
}

// IsDecision reports whether a cause was decided, rather than happened.
func (c Cause) IsDecision() bool {
	switch c {
	case CauseJobRemoved, CauseUndeclared, CauseExpired, CauseStopped, CauseEnded, CauseMoved, CauseReplaced, CauseNotPlaced,
		CauseBudget, CauseYielded, CauseMakesRoom, CauseIdle, CausePlacedAgain, CauseReshaped, CauseUnneeded, CauseUnused:
		return true
	case CauseNone, CausePreempted, CauseHostBad, CauseNotice, CauseDead, CauseHostLost, CauseHostGone, CauseBoot, CauseQueue,
		CauseIdleUnwell, CauseUnknown:
	}
	return false
}
