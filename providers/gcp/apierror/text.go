package apierror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/schema"
)

// answerError is an answer of the service without the details in JSON that the
// library writes below its message.
type answerError struct{ answer *googleapi.Error }

func (e *answerError) Error() string {
	if e.answer.Message == "" {
		return fmt.Sprintf("the service answered %d %s", e.answer.Code, http.StatusText(e.answer.Code))
	}
	return fmt.Sprintf("the service answered %d: %s", e.answer.Code, e.answer.Message)
}

func (e *answerError) Unwrap() error { return e.answer }

// Response is the answer of a service without the details in JSON.
func Response(answer *googleapi.Error) error { return &answerError{answer: answer} }

// Brief says in one line, with the service's text, what the libraries say in
// more.
func Brief(err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		text, _, _ = strings.Cut(strings.Replace(text, e.Error(), Response(e).Error(), 1), "\n")
	}
	if text = strings.TrimRight(strings.ReplaceAll(text, "\n", "; "), ". "); text == err.Error() {
		return err
	}
	return &briefError{text, err}
}

// briefError is an error with a shorter text.
type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }

func (e *briefError) Unwrap() error { return e.err }

// Interrupted puts the cause with which ctx has ended before what came of it:
// gRPC's errors do not know it.
func Interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return Errorf(schema.ErrorUnavailable, "%w: %w", context.Cause(ctx), err)
}

// StatusOf is the HTTP status that the service answered with, 0 if it did not.
func StatusOf(err error) int {
	if answer, ok := errors.AsType[*googleapi.Error](err); ok {
		return answer.Code
	}
	return 0
}
