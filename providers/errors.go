package providers

import (
	"errors"
	"fmt"
)

// ErrorKind is the closed set of reasons why a provider call did not work.
type ErrorKind string

// The kinds. An error that is not classified counts as KindUnavailable.
const (
	KindCapacity    ErrorKind = "capacity"    // stockout: none to be had here now
	KindQuota       ErrorKind = "quota"       // not allowed more
	KindRate        ErrorKind = "rate"        // too many calls
	KindConflict    ErrorKind = "conflict"    // something else has the name
	KindInvalid     ErrorKind = "invalid"     // the request can never work
	KindPermission  ErrorKind = "permission"  // credentials or rights
	KindNotFound    ErrorKind = "not_found"   // what was named is not there
	KindUnavailable ErrorKind = "unavailable" // passing; says nothing about the world
)

// Error is a classified error of a provider.
type Error struct {
	Kind ErrorKind
	Op   string // "create slice"
	Name string // of the slice, may be ""
	Err  error
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Name, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error, KindUnavailable for one that nobody classified.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindUnavailable
}
