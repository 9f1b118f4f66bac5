package cloud

import "fmt"

// Reason is a closed set of why the cloud rejects a call or fails an operation.
// Servers turn it into their protocol's code.
type Reason string

// The reasons.
const (
	ReasonInvalid         Reason = "invalid"          // INVALID_ARGUMENT, 400
	ReasonExists          Reason = "exists"           // ALREADY_EXISTS, 409
	ReasonNotFound        Reason = "not found"        // NOT_FOUND, 404
	ReasonState           Reason = "state"            // code 3 of an operation: not supported while in that state
	ReasonPrecondition    Reason = "precondition"     // FAILED_PRECONDITION, 400
	ReasonStockout        Reason = "stockout"         // code 8 of an operation; ZONE_RESOURCE_POOL_EXHAUSTED
	ReasonQuota           Reason = "quota"            // RESOURCE_EXHAUSTED, 429; QUOTA_EXCEEDED
	ReasonRate            Reason = "rate"             // RESOURCE_EXHAUSTED, 429
	ReasonReservation     Reason = "reservation"      // code 9 of an operation
	ReasonInternal        Reason = "internal"         // INTERNAL, 500
	ReasonUnavailable     Reason = "unavailable"      // UNAVAILABLE, 503
	ReasonDenied          Reason = "denied"           // PERMISSION_DENIED, 403
	ReasonDisabled        Reason = "disabled"         // PERMISSION_DENIED, 403, SERVICE_DISABLED
	ReasonUnauthenticated Reason = "unauthenticated"  // UNAUTHENTICATED, 401
	ReasonCancelled       Reason = "cancelled"        // CANCELLED, 499
	ReasonExpired         Reason = "deadline expired" // DEADLINE_EXCEEDED of a queued resource's failure
)

// Error is a rejection or a failure with the text of the TPU API. A server with
// other texts finds the facts in the fields, as far as they apply.
type Error struct {
	Reason  Reason
	Message string
	Zone    string
	Region  string
	Type    string // of capacity, "v5litepod"
	Limit   int    // of a quota
	Tier    Tier   // of a quota, "" of one of all tiers
	// Permission is the one that is missing, API the one that is disabled.
	Permission, API string
}

func (e *Error) Error() string { return e.Message }

func newError(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
