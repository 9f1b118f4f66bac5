package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Limits of an error that is sent, in bytes.
const (
	maxMessage   = 64 << 10
	maxTraceback = 256 << 10
	maxChain     = 16 // errors that it was made from
)

// maybeExecutedError is an error that is no answer: whether the call took effect is not known, as where a journal cannot be
// written and the process is to end. The caller asks again, or is to know that it may have run.
type maybeExecutedError interface {
	error
	MaybeExecuted() bool
}

// methodError is what a method returned. ctx is its context, nil if it took none.
func methodError(ctx context.Context, err error) *rpcerror.Error {
	if ctx != nil && ctx.Err() != nil {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return &rpcerror.Error{Code: rpcerror.CodeDeadline, Message: "the deadline passed while the method ran", Ran: true}
		case errors.Is(err, context.Canceled), errors.Is(err, context.Cause(ctx)):
			return cancelled(ctx)
		}
	}
	if unknown, ok := errors.AsType[maybeExecutedError](err); ok && unknown.MaybeExecuted() {
		return &rpcerror.Error{Code: rpcerror.CodeMaybeExecuted, Message: clip(err.Error(), maxMessage), Ran: true}
	}
	e := chain(err, maxChain)
	e.Ran = true
	e.Bases = typesWithin(err)
	return e
}

// typesWithin are the types of the errors that one wraps, as errors.As finds them.
func typesWithin(err error) []string {
	var types []string
	var visit func(error)
	visit = func(err error) {
		switch e := any(err).(type) {
		case interface{ Unwrap() error }:
			if inner := e.Unwrap(); inner != nil && len(types) < maxChain {
				types = append(types, fmt.Sprintf("%T", inner))
				visit(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				if inner != nil && len(types) < maxChain {
					types = append(types, fmt.Sprintf("%T", inner))
					visit(inner)
				}
			}
		}
	}
	visit(err)
	return types
}

// cancelled is why the context of a method ended.
func cancelled(ctx context.Context) *rpcerror.Error {
	if cause, ok := errors.AsType[*rpcerror.Error](context.Cause(ctx)); ok {
		e := *cause
		e.Ran = true
		return &e
	}
	return &rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the call was cancelled while the method ran", Ran: true}
}

// chain is an error and those that it was made from.
func chain(err error, left int) *rpcerror.Error {
	inner, nested := any(err).(*rpcerror.Error) // of a call that the method made
	if nested && left < maxChain {
		return inner
	}
	e := &rpcerror.Error{Code: rpcerror.CodeApplication, Type: fmt.Sprintf("%T", err), Message: clip(err.Error(), maxMessage)}
	if nested {
		e.Cause = inner
		return e
	}
	if f, ok := err.(fmt.Formatter); ok {
		e.Traceback = clip(fmt.Sprintf("%+v", f), maxTraceback)
	}
	if cause := unwrap(err); cause != nil && left > 1 {
		e.Cause = chain(cause, left-1)
	}
	return e
}

func unwrap(err error) error {
	switch e := any(err).(type) {
	case interface{ Unwrap() error }:
		return e.Unwrap()
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if one != nil {
				return one
			}
		}
	}
	return nil
}

func panicError(problem any, ran bool) *rpcerror.Error {
	e := &rpcerror.Error{
		Code: rpcerror.CodeApplication, Type: "panic", Message: clip(fmt.Sprintf("panic: %v", problem), maxMessage), Ran: ran,
		Traceback: clip(string(debug.Stack()), maxTraceback),
	}
	if err, ok := problem.(error); ok {
		e.Type = fmt.Sprintf("%T", err)
	}
	return e
}

// codecError names the argument that does not fit.
func codecError(code rpcerror.Code, err error) *rpcerror.Error {
	if e, ok := errors.AsType[*rpcerror.Error](err); ok {
		return e
	}
	e := &rpcerror.Error{Code: code, Message: err.Error()}
	if problem, ok := errors.AsType[*codec.Error](err); ok {
		e.Argument, e.Message = problem.Path, problem.Problem
	}
	if _, ok := errors.AsType[*codec.TooLargeError](err); ok {
		e.Code = rpcerror.CodeTooLarge
	}
	return e
}

// tooLarge is the error that what ("the arguments are", "the result is") has a size over a limit.
func tooLarge(what string, size, limit uint64) *rpcerror.Error {
	return &rpcerror.Error{
		Code:    rpcerror.CodeTooLarge,
		Message: fmt.Sprintf("%s %s; at most %s are taken (max_message_bytes)", what, bytesText(size), bytesText(limit)),
	}
}

// bytesText is a size in GiB or MiB, or in bytes where it is small.
func bytesText(n uint64) string {
	unit, name := uint64(1<<20), "MiB"
	switch {
	case n < unit:
		return fmt.Sprintf("%d bytes", n)
	case n >= 1<<30:
		unit, name = 1<<30, "GiB"
	}
	if n%unit == 0 {
		return fmt.Sprintf("%d %s", n/unit, name)
	}
	tenths := n/unit*10 + (n%unit*10+unit-1)/unit // up: it is more than the limit
	return fmt.Sprintf("%d.%d %s", tenths/10, tenths%10, name)
}
