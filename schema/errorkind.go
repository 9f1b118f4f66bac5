package schema

// ErrorKind is the closed set of reasons why a call to a provider did not work,
// or why a slice is dead.
type ErrorKind string

// The kinds. An error that no provider classified counts as ErrorUnavailable.
const (
	ErrorCapacity    ErrorKind = "capacity"    // stockout: none to be had in this zone now
	ErrorQuota       ErrorKind = "quota"       // not allowed more in this region
	ErrorRate        ErrorKind = "rate"        // too many calls
	ErrorReservation ErrorKind = "reservation" // what was reserved with the cloud is used up for now
	ErrorPreempted   ErrorKind = "preempted"   // taken away, maybe before it was up
	ErrorConflict    ErrorKind = "conflict"    // something else has the name
	ErrorInvalid     ErrorKind = "invalid"     // can never work as it is asked for
	ErrorPermission  ErrorKind = "permission"  // credentials or rights
	ErrorUnavailable ErrorKind = "unavailable" // passing; says nothing about the world
)
