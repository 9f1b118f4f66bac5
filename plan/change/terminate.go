package change

import (
	"github.com/fray-ml/fray/state"
)

// Decided is why a slice goes by a decision.
func Decided(c state.Cause) state.Termination {
	return state.Termination{Cause: c, Text: DecisionText(c)}
}

// DecisionText returns what people read of a decision to end something.
func DecisionText(c state.Cause) string {
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
	case state.CauseBudget:
		return "its namespace has used its cost budget"
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
