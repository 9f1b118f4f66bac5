package cloud

import "time"

// RequestSpec asks for groups once there is capacity: a queued resource.
type RequestSpec struct {
	Key    // of KindQueued
	Groups []Spec
	// ValidUntil fails the request if it has not been provisioned by then.
	ValidUntil time.Time
	ValidAfter time.Time // not before
	Detail     any       // the server's own
	Changed    func(*Request)
}

// RequestState is a closed set of the states of a queued resource.
type RequestState string

// The states of a queued resource.
const (
	RequestCreating     RequestState = "CREATING"
	RequestAccepted     RequestState = "ACCEPTED"
	RequestWaiting      RequestState = "WAITING_FOR_RESOURCES"
	RequestProvisioning RequestState = "PROVISIONING"
	RequestActive       RequestState = "ACTIVE"
	RequestSuspending   RequestState = "SUSPENDING"
	RequestSuspended    RequestState = "SUSPENDED"
	RequestFailed       RequestState = "FAILED"
	RequestDeleting     RequestState = "DELETING"
	RequestGone         RequestState = "GONE" // removed; only Changed sees it
)

// Request is a queued resource at one moment. It never changes.
type Request struct {
	RequestSpec
	State   RequestState
	Err     *Error // why it failed
	Created time.Time
	ByUser  bool // the last change of state was asked for, not the service's own
}
