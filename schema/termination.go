package schema

import (
	"fmt"
)

// TerminationCause is why a program can never do what it was started for. It is a
// closed set.
type TerminationCause string

// The causes.
const (
	TerminationActorUnmade     TerminationCause = "actor_unmade"     // its constructor failed
	TerminationActorInvalid    TerminationCause = "actor_invalid"    // it can never be registered: its class, its options or its name are wrong
	TerminationCallableRefused TerminationCause = "callable_refused" // unpickling the callable failed
	TerminationCallableInvalid TerminationCause = "callable_invalid" // the pickled callable can never run there: it is of another Python, or a module is missing
	TerminationProgramMissing  TerminationCause = "program_missing"  // its host does not have the program, or may not execute it
	TerminationPackageMissing  TerminationCause = "package_missing"  // its Python does not have the package fray
	TerminationFinal           TerminationCause = "final"            // as the program itself states: what it was to do has failed for good, such as a run of fray rl
)

// Valid reports whether it is one of the causes.
func (c TerminationCause) Valid() bool {
	switch c {
	case TerminationActorUnmade, TerminationActorInvalid, TerminationCallableRefused, TerminationCallableInvalid,
		TerminationProgramMissing, TerminationPackageMissing, TerminationFinal:
		return true
	}
	return false
}

// Permanent reports whether the next attempt would end the same way: something has to
// be installed or corrected first.
func (c TerminationCause) Permanent() bool {
	switch c {
	case TerminationActorInvalid, TerminationCallableInvalid, TerminationProgramMissing, TerminationPackageMissing, TerminationFinal:
		return true
	case TerminationActorUnmade, TerminationCallableRefused: // a constructor may have waited for a service in vain
	}
	return false
}

// Termination is what a program of fray's own records about its end, in the file
// that FRAY_TERMINATION_FILE names: its agent reads the cause there, and not in what
// the program prints for people. The agent itself records that something is missing.
type Termination struct {
	Cause   TerminationCause `json:"cause"`
	Message string           `json:"message"` // for people, of one line or several
	// Type is the type of the exception and Trace where it was raised, "" without one.
	Type  string `json:"type,omitempty"`
	Trace string `json:"trace,omitempty"`
}

// String is the message with its type, for people.
func (t *Termination) String() string {
	if t.Type == "" {
		return t.Message
	}
	return fmt.Sprintf("%s: %s", t.Type, t.Message)
}
