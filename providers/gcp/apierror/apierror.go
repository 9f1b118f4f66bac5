package apierror

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/auth"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// Error is an error whose kind is known where it arises.
type Error struct {
	Kind  schema.ErrorKind
	After time.Duration // providers.Error's
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error of a kind.
func Errorf(kind schema.ErrorKind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// OperationError is an error of an operation of Compute Engine, which names it
// by a reason where all others have a number.
type OperationError struct {
	Code    string // "ZONE_RESOURCE_POOL_EXHAUSTED"
	Message string
}

func (e *OperationError) Error() string { return cmp.Or(e.Message, e.Code) }

// LateError is an error with which an operation of the TPU API has ended. What
// such an operation runs out of are resources; a call runs out of calls.
type LateError struct{ Err error }

func (e *LateError) Error() string { return cmp.Or(status.Convert(e.Err).Message(), e.Err.Error()) }
func (e *LateError) Unwrap() error { return e.Err }

// Wrap wraps an error once, at the provider's boundary.
func Wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	f := FindingOf(err)
	if f.do != "" {
		err = fmt.Errorf("%w; %s", Brief(err), f.do)
	} else {
		err = Brief(err)
	}
	return &providers.Error{Kind: f.Kind, Op: op, Name: name, Err: err, After: f.after}
}

// KindOf is the kind of an error of an engine, "" for none.
func KindOf(err error) schema.ErrorKind {
	if err == nil {
		return ""
	}
	return FindingOf(err).Kind
}

// Finding is what an error means, and what to do about it.
type Finding struct {
	Kind  schema.ErrorKind
	do    string
	after time.Duration
}

// FindingOf classifies whatever the services and the ways to them answer.
func FindingOf(err error) Finding {
	if known, ok := errors.AsType[*Error](err); ok {
		return Finding{Kind: known.Kind, after: known.After}
	}
	if a, ok := AnswerOf(err); ok {
		return a.finding()
	}
	if token, ok := errors.AsType[*auth.Error](err); ok && !token.Temporary() {
		return Finding{Kind: schema.ErrorPermission, do: loginAgain}
	}
	return Finding{Kind: schema.ErrorUnavailable}
}
