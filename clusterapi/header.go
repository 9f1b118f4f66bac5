package clusterapi

// What calls say beside their message, to the agent that passes them on.
const (
	// NoWaitHeader, with any value, asks not to wait for a controller where
	// nobody leads: the call fails at once with UNAVAILABLE then.
	NoWaitHeader = "fray-no-wait"
	// ReasonTrailer says why an agent could not pass a call on.
	ReasonTrailer = "fray-reason"
	// ReasonNoController is the reason that nobody leads: no lease was ever
	// taken, it is free, or its holder serves nothing, as fray apply does.
	ReasonNoController = "NO_CONTROLLER"
)
