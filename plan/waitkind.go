package plan

import (
	"github.com/fray-ml/fray/schema"
)

// WaitKind is a closed set of what addresses wait for, by which programs count or sort what
// [Pending] says in words.
type WaitKind string

// The kinds.
const (
	WaitNone       WaitKind = ""           // it waits for nothing
	WaitUnderway   WaitKind = "underway"   // what the plan does or what is being done
	WaitDependency WaitKind = "dependency" // another job, or a value that is not known yet
	WaitBlocked    WaitKind = "blocked"    // what has ended otherwise, and so will not come about
	WaitTurn       WaitKind = "turn"       // others that come first, those within their budgets among them
	WaitLimit      WaitKind = "limit"      // of a provider, a namespace or a user
	WaitBudget     WaitKind = "budget"     // the next month, since a namespace has used its cost budget
	WaitRoom       WaitKind = "room"       // in a reservation
	WaitCapacity   WaitKind = "capacity"   // of a cloud, which has none
	WaitQuota      WaitKind = "quota"      // of a cloud's account
	WaitRetry      WaitKind = "retry"      // the next try after something failed
	WaitProvider   WaitKind = "provider"   // one that cannot be asked
	// WaitUnconfirmed: for the confirmation of what a list says of a slice
	WaitUnconfirmed WaitKind = "unconfirmed"
	WaitConstraint  WaitKind = "constraint" // it is asked for what no place has
)

// WaitKinds are all of them.
func WaitKinds() []WaitKind {
	return []WaitKind{
		WaitUnderway, WaitDependency, WaitBlocked, WaitTurn, WaitLimit, WaitBudget, WaitRoom, WaitCapacity, WaitQuota, WaitRetry, WaitProvider, WaitUnconfirmed, WaitConstraint,
	}
}

// Chief is the kind of an address that waits for two reasons: what is being done comes about by
// itself, and so counts least.
func Chief(a, b WaitKind) WaitKind {
	if a == WaitUnderway {
		return b
	}
	return a
}

// WaitKindOf is the kind of waiting for what a provider refused.
func WaitKindOf(kind schema.ErrorKind) WaitKind {
	switch kind {
	case schema.ErrorQuota:
		return WaitQuota
	case schema.ErrorCapacity, schema.ErrorReservation, schema.ErrorPreempted:
		return WaitCapacity
	case schema.ErrorInvalid:
		return WaitConstraint
	case schema.ErrorPermission:
		return WaitProvider
	case schema.ErrorRate, schema.ErrorConflict, schema.ErrorUnavailable:
	}
	return WaitRetry
}
