package forge

import (
	"errors"
	"fmt"
	"time"
)

// Cause is a closed set of reasons why a forge did not do what it was asked for.
type Cause string

// The causes.
const (
	NotFound    Cause = "not found"   // or hidden from this token
	Denied      Cause = "denied"      // this token may not do it
	Limited     Cause = "limited"     // too many requests: later they are served
	Invalid     Cause = "invalid"     // the request is not accepted as it is
	Unavailable Cause = "unavailable" // the forge fails, or cannot be reached
)

// Error is the error of a call.
type Error struct {
	Doing   string // "list comments of pull request 7"
	Cause   Cause
	Status  int           // of the answer; 0: there was none
	After   time.Duration // of Limited and Unavailable: when to try again; 0: not stated
	Message string        // by the forge or the transport, without credentials
}

func (e *Error) Error() string {
	answer := ""
	if e.Status != 0 {
		answer = fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	return fmt.Sprintf("%s: %s%s%s", e.Doing, e.Message, answer, e.remedy())
}

// remedy is what to do about it, as the end of a message.
func (e *Error) remedy() string {
	switch e.Cause {
	case Denied:
		return "; give the token of this job the permission for it"
	case NotFound:
		return "; check the repository, the number and that the token may read them"
	case Limited:
		return "; the forge limits requests: run the job again later"
	case Invalid, Unavailable:
	}
	return ""
}

// IsCause reports whether an error is that of a call which failed for a cause.
func IsCause(err error, cause Cause) bool {
	var e *Error
	return errors.As(err, &e) && e.Cause == cause
}

// CauseOf is the cause that a status of HTTP stands for. Limits that are reported with
// another status are for the caller to know.
func CauseOf(status int) Cause {
	switch {
	case status == 404 || status == 410:
		return NotFound
	case status == 401 || status == 403:
		return Denied
	case status == 429:
		return Limited
	case status >= 500 || status == 0:
		return Unavailable
	}
	return Invalid
}
