package clusterapi

// Headers of calls, for the agent that passes them on.
const (
	// NoWaitHeader, with any value, asks not to wait for a controller where
	// no controller leads: the call fails at once with UNAVAILABLE then.
	NoWaitHeader = "fray-no-wait"
	// ReasonTrailer is the reason why an agent could not pass a call on.
	ReasonTrailer = "fray-reason"
	// ReasonNoController means that no controller leads: no lease was ever
	// taken, it is free, or its holder serves nothing, as fray apply does.
	ReasonNoController = "NO_CONTROLLER"
)
