package plan

// DriftKind is a closed set of how the world came to differ from the state by itself.
type DriftKind string

// The kinds of drift.
const (
	DriftSliceGone       DriftKind = "slice_gone"       // a slice that the state has is not there
	DriftSliceUndeclared DriftKind = "slice_undeclared" // a slice carries the stack's mark, and nothing asks for it
	DriftSliceEdited     DriftKind = "slice_edited"     // labels or tags of a slice are not those that were asked for
	DriftSliceUnreadable DriftKind = "slice_unreadable" // what carries the stack's mark cannot be read, or is a copy
	DriftHostsDown       DriftKind = "hosts_down"       // hosts of a slice are to be started again
	DriftAssignment      DriftKind = "assignment_unreadable"
	DriftUnrecorded      DriftKind = "attempt_unrecorded" // an attempt runs that the state does not have
	DriftAttemptStopped  DriftKind = "attempt_stopped"    // an attempt is being stopped, and the state does not have that
	DriftAttemptLost     DriftKind = "attempt_lost"       // an attempt lost hosts or slices
	DriftPreempted       DriftKind = "preempted"          // an attempt lost hosts or slices that a cloud may take away
	DriftAttemptEnded    DriftKind = "attempt_ended"      // tasks of an attempt ended
	DriftYields          DriftKind = "yields"             // an attempt ends for a job that comes first
	DriftBudget          DriftKind = "budget"             // an attempt ends since the money of its namespace is used up
	// DriftRecord is what else a refresh has to record.
	DriftRecord DriftKind = "record"
)

// DriftKinds are all of them.
func DriftKinds() []DriftKind {
	return []DriftKind{
		DriftSliceGone, DriftSliceUndeclared, DriftSliceEdited, DriftSliceUnreadable, DriftHostsDown, DriftAssignment,
		DriftUnrecorded, DriftAttemptStopped, DriftAttemptLost, DriftPreempted, DriftAttemptEnded, DriftYields, DriftBudget, DriftRecord,
	}
}

// IsLifecycle reports whether it is part of the life of a job: attempts end, are preempted
// and yield without anything having been changed from outside.
func (k DriftKind) IsLifecycle() bool {
	switch k {
	case DriftPreempted, DriftAttemptEnded, DriftYields, DriftBudget, DriftRecord:
		return true
	case DriftSliceGone, DriftSliceUndeclared, DriftSliceEdited, DriftSliceUnreadable, DriftHostsDown, DriftAssignment,
		DriftUnrecorded, DriftAttemptStopped, DriftAttemptLost:
	}
	return false
}

// LossKind is how the loss of an attempt's hosts or slices is drift.
func LossKind(preempted bool) DriftKind {
	if preempted {
		return DriftPreempted
	}
	return DriftAttemptLost
}
