package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"cloud.google.com/go/auth"

	"github.com/fray-ml/fray/providers/gcp/apierror"
)

// MaxBackoff is the longest time between two tries.
const MaxBackoff = 10 * time.Second

// Retry tries until it works, fails for good, ctx ends, or patience is over.
func (t Pace) Retry(ctx context.Context, try func() error) error {
	began, backoff := time.Now(), t.Backoff
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := brief(try())
		if err == nil || !IsTransient(err) {
			return Ended(ctx, err)
		}
		// Jitter keeps many hosts that failed together from coming back together.
		wait := time.Duration(float64(backoff) * (0.5 + rand.Float64()))
		if apierror.StatusOf(err) == http.StatusTooManyRequests {
			wait = max(wait, t.Interval)
		}
		if time.Since(began)+wait > t.Patience {
			return fmt.Errorf("it kept failing for %v: %w", t.Patience, err)
		}
		if time.Since(began)+wait >= noticeAfter {
			giveNotice(ctx, err)
		}
		if cause := Pause(ctx, wait); cause != nil {
			return fmt.Errorf("%w; before that: %w", cause, err)
		}
		backoff = min(2*backoff, MaxBackoff)
	}
}

// Ended puts the cause with which ctx has ended before what came of it.
func Ended(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// requestError is an error of a request without the request's address, whose
// query is long and means nothing to people.
type requestError struct{ request *url.Error }

func (e *requestError) Error() string { return e.request.Err.Error() }

func (e *requestError) Unwrap() error { return e.request }

func brief(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok && request.Error() == err.Error() {
		return &requestError{request}
	}
	return err
}

// transientError is an error of the way to a service that the next try may not meet.
type transientError struct{ text string }

func (e *transientError) Error() string { return e.text }

// Transient returns an error that is worth another try.
func Transient(text string) error { return &transientError{text: text} }

// ErrDamaged marks content that differs from its checksum.
var ErrDamaged = Transient("the content arrived damaged")

// IsTransient reports whether an error may be gone with the next try. It says
// nothing about whether a write has happened.
func IsTransient(err error) bool {
	if status := apierror.StatusOf(err); status != 0 {
		return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
	}
	if token, ok := errors.AsType[*auth.Error](err); ok {
		return token.Temporary()
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return false
	}
	if _, ok := errors.AsType[*transientError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller's
	}
	_, request := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	return request || network
}
