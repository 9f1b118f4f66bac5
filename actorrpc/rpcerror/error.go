package rpcerror

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// Code is a closed set of what can go wrong with a call.
type Code string

// The codes; wire/actor.proto says what each means.
const (
	CodeApplication   Code = "application"
	CodeUnknownActor  Code = "unknown_actor"
	CodeUnknownMethod Code = "unknown_method"
	CodeBadArguments  Code = "bad_arguments"
	CodeEncoding      Code = "encoding"
	CodeTooLarge      Code = "too_large"
	CodeStale         Code = "stale"
	CodeMalformed     Code = "malformed"
	CodeVersion       Code = "version"
	CodeBusy          Code = "busy"
	CodeDeadline      Code = "deadline"
	CodeCancelled     Code = "cancelled"
	CodeStopping      Code = "stopping"
	CodeMaybeExecuted Code = "maybe_executed"
	CodeDenied        Code = "denied"
	CodeInternal      Code = "internal"
	CodeUnavailable   Code = "unavailable"
	CodeActorDead     Code = "actor_dead"
)

// orderedCodes are in the order of the wire's numbers, from 1 on.
func orderedCodes() []Code {
	return []Code{
		CodeApplication, CodeUnknownActor, CodeUnknownMethod, CodeBadArguments, CodeEncoding, CodeTooLarge, CodeStale, CodeMalformed,
		CodeVersion, CodeBusy, CodeDeadline, CodeCancelled, CodeStopping, CodeMaybeExecuted, CodeDenied, CodeInternal, CodeUnavailable,
		CodeActorDead,
	}
}

// Error is what went wrong with a call of a method.
type Error struct {
	Code    Code
	Message string
	// Ran reports that the method may have begun. Where it is false the call had no effect.
	Ran         bool
	Actor       string
	Method      string
	Argument    string   // path of the offending one: "args[1].lr", "result[0]"; ""
	Suggestions []string // names that were perhaps meant
	// Type and Traceback are of the exception that the method raised.
	Type      string
	Bases     []string // further types that it is of: base classes in Python, types of the errors that one in Go wraps
	Traceback string
	Cause     *Error // what that was raised from

	selfCall bool // see SelfCallError
}

// Error names the actor, the method and the argument, and what to do where there is something.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Actor != "" {
		b.WriteString(e.Actor)
		if e.Method != "" {
			b.WriteString("." + e.Method)
		}
		b.WriteString(": ")
	}
	if e.Argument != "" {
		b.WriteString(e.Argument + ": ")
	}
	b.WriteString(e.Message)
	if len(e.Suggestions) > 0 {
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(e.Suggestions, ", "))
	}
	return b.String()
}

// Died is the error of a call that may have run in an actor which has died for good since. It is
// of [CodeMaybeExecuted], and its cause of [CodeActorDead]: errors.Is finds both.
func Died(death *Error) *Error {
	return &Error{Code: CodeMaybeExecuted, Message: death.Message + "; the call may have run", Ran: true, Cause: death}
}

// IsActorDead reports whether an error is of an actor that is dead for good: of a call that did not
// begin, or by [Died] of one that may have run.
func IsActorDead(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Code == CodeActorDead || e.Code == CodeMaybeExecuted && e.Cause != nil && e.Cause.Code == CodeActorDead)
}

// Is makes errors.Is(err, &Error{Code: c}) true for errors of that code. Those of
// [CodeDeadline] and [CodeCancelled] are also the errors of a context for that.
func (e *Error) Is(target error) bool {
	if target == context.DeadlineExceeded {
		return e.Code == CodeDeadline
	}
	if target == context.Canceled {
		return e.Code == CodeCancelled
	}
	other, ok := target.(*Error)
	return ok && other.Code == e.Code && other.Message == "" && other.Actor == ""
}

// Unwrap is the cause.
func (e *Error) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return e.Cause
}

// SelfCall is the error of a call that can begin only once the method has returned which waits for it.
func SelfCall(message string, ran bool) *Error {
	return &Error{Code: CodeBusy, Message: message, Ran: ran, selfCall: true}
}

// Typed is the error as callers get it: a [SelfCallError] if it is of a [SelfCall].
func (e *Error) Typed() error {
	if e.selfCall {
		return &SelfCallError{e}
	}
	return e
}

// SelfCallError is of a call that can begin only once the method has returned which waits
// for it. So it is where a method calls its own actor, which runs one at a time, or calls
// another that calls back so.
//
// It is noticed where it is certain: the methods wait by actorrpc.Call, CallRaw, Broadcast,
// Wait or Future.Result, with the contexts that they were given (or such as only add values), and
// the calls of a chain are of one client. A context with a deadline or a cancel of its own, and one of
// [context.WithoutCancel], may be for what goes on beside the method. Such calls wait.
type SelfCallError struct {
	Busy *Error // of [CodeBusy]
}

func (e *SelfCallError) Error() string { return e.Busy.Error() }

// Unwrap is the error as others see it.
func (e *SelfCallError) Unwrap() error { return e.Busy }

// CodeOf is the code of a call's error, "" of any other error.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Wire is the error as it is sent. Text that is no UTF-8, as errors of files and sockets may
// have, would not be: what is none of it is replaced.
func (e *Error) Wire() *wire.Error {
	if e == nil {
		return nil
	}
	w := &wire.Error{
		Code: wire.Code_CODE_INTERNAL, Message: valid(e.Message), Ran: e.Ran, Actor: valid(e.Actor), Method: valid(e.Method),
		Argument: valid(e.Argument), Type: valid(e.Type), Traceback: valid(e.Traceback), Cause: e.Cause.Wire(),
	}
	for _, name := range e.Suggestions {
		w.Near = append(w.Near, valid(name))
	}
	for _, name := range e.Bases {
		w.Bases = append(w.Bases, valid(name))
	}
	for i, c := range orderedCodes() {
		if c == e.Code {
			w.Code = wire.Code(i + 1)
		}
	}
	return w
}

func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// maxCauses bounds a chain of causes that a peer sends.
const maxCauses = 32

// FromWire is an error as it was received, nil of nil.
func FromWire(w *wire.Error) *Error { return fromWire(w, maxCauses) }

func fromWire(w *wire.Error, depth int) *Error {
	if w == nil || depth == 0 {
		return nil
	}
	e := &Error{
		Code: CodeInternal, Message: w.GetMessage(), Ran: w.GetRan(), Actor: w.GetActor(), Method: w.GetMethod(), Argument: w.GetArgument(),
		Suggestions: w.GetNear(), Type: w.GetType(), Bases: w.GetBases(), Traceback: w.GetTraceback(), Cause: fromWire(w.GetCause(), depth-1),
	}
	if i := int(w.GetCode()) - 1; i >= 0 && i < len(orderedCodes()) {
		e.Code = orderedCodes()[i]
	}
	return e
}

// UnknownActor is the error of a name that is not among those which are known.
func UnknownActor(name string, known []string) *Error {
	return UnknownActorOf(name, Suggest(name, known))
}

// UnknownActorOf is the error of a name that is not known, with the names that were perhaps meant.
func UnknownActorOf(name string, suggestions []string) *Error {
	return &Error{Code: CodeUnknownActor, Message: fmt.Sprintf("no actor %q is here", name), Actor: name, Suggestions: suggestions}
}
