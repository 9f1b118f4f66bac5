package providers

import (
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/schema"
)

// Error is a classified error of a provider.
type Error struct {
	Kind schema.ErrorKind
	Op   string // "create slice"
	Name string // of the slice, may be ""
	Err  error
	// After is how long to leave it alone, where the provider knows; 0: the
	// kind decides.
	After time.Duration
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Name, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error, ErrorUnavailable for one that has no class.
func KindOf(err error) schema.ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return schema.ErrorUnavailable
}

// DelayOf is how long to leave alone what failed, 0 where the error states none.
func DelayOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.After
	}
	return 0
}

// BriefOf is the text of an error without the call that it is of.
func BriefOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
