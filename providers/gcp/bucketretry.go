package gcp

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
	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"
)

const maxBackoff = 10 * time.Second

func (b *Bucket) retry(ctx context.Context, try func() error) error { return b.tempo.retry(ctx, try) }

// retry tries until it works, fails for good, ctx ends, or patience is over.
func (t tempo) retry(ctx context.Context, try func() error) error {
	began, backoff := time.Now(), t.backoff
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := brief(try())
		if err == nil || !passing(err) {
			return ended(ctx, err)
		}
		// Jitter keeps many hosts that failed together from coming back together.
		wait := time.Duration(float64(backoff) * (0.5 + rand.Float64()))
		if statusOf(err) == http.StatusTooManyRequests {
			wait = max(wait, t.interval)
		}
		if time.Since(began)+wait > t.patience {
			return fmt.Errorf("it kept failing for %v: %w", t.patience, err)
		}
		if time.Since(began)+wait >= troubleAfter {
			tellTrouble(ctx, err)
		}
		if cause := pause(ctx, wait); cause != nil {
			return fmt.Errorf("%w; before that: %w", cause, err)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// ended puts the cause with which ctx has ended before what came of it.
func ended(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// streak is a row of failures in what only the library can retry: the chunks
// of an upload and the rest of a download. It is over once something arrives.
type streak struct {
	tempo tempo
	began time.Time // zero: there is none
}

func (s *streak) end() { s.began = time.Time{} }

func (s *streak) goesOn(err error) bool {
	if !passing(err) {
		return false
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return time.Since(s.began) < s.tempo.patience
}

func (s *streak) retryer() []storage.RetryOption {
	return []storage.RetryOption{
		storage.WithPolicy(storage.RetryAlways),
		storage.WithErrorFunc(s.goesOn),
		storage.WithBackoff(gax.Backoff{Initial: s.tempo.backoff, Max: maxBackoff, Multiplier: 2}),
	}
}

// requestError is an error of a request without the request's address, whose
// query is long and says nothing to people.
type requestError struct{ request *url.Error }

func (e *requestError) Error() string { return e.request.Err.Error() }
func (e *requestError) Unwrap() error { return e.request }

func brief(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok && request.Error() == err.Error() {
		return &requestError{request}
	}
	return err
}

// errTorn is content that is not what its checksum says.
var errTorn = errors.New("the content arrived damaged")

// passing reports whether an error may be gone with the next try. It says
// nothing about whether a write has happened.
func passing(err error) bool {
	if status := statusOf(err); status != 0 {
		return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
	}
	if token, ok := errors.AsType[*auth.Error](err); ok {
		return token.Temporary()
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return false
	}
	if errors.Is(err, errStalled) || errors.Is(err, errTorn) || errors.Is(err, errBaseless) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller's
	}
	_, request := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	return request || network
}

// statusOf is the HTTP status that the service answered with, 0 if it did not.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*googleapi.Error](err); ok {
		return answer.Code
	}
	return 0
}
