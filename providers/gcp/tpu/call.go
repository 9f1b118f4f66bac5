package tpu

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
)

// callError is an error of a call with the service's text.
type callError struct {
	what string // "list nodes"
	err  error
}

func (e *callError) Error() string {
	s, ok := status.FromError(e.err)
	if !ok {
		return e.what + ": " + e.err.Error()
	}
	return fmt.Sprintf("%s: the service answered %s: %s", e.what, s.Code(), s.Message())
}

func (e *callError) Unwrap() error { return e.err }

// call is one call of the TPU API.
type call struct {
	what   string // "list nodes"
	field  string // of the request that routes it: "parent" or "name"
	target string // that field
}

// invoke calls once: the caller of the provider decides whether that is wanted.
func invoke[Request, Response any](
	ctx context.Context, c call, method func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request,
) (Response, error) {
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	// The service finds the region by this header, which the official clients send.
	bounded = metadata.AppendToOutgoingContext(bounded, "x-goog-request-params", c.field+"="+url.QueryEscape(c.target))
	response, err := method(bounded, request)
	if err != nil {
		return response, apierror.Interrupted(ctx, &callError{what: c.what, err: err})
	}
	return response, nil
}

func query[Request, Response any](
	ctx context.Context, r engine.Reader, c call, method func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request,
) (Response, error) {
	for try := 0; ; try++ {
		response, err := invoke(ctx, c, method, request)
		if err == nil || try == engine.ReadTries-1 || !mayPass(err) {
			return response, err
		}
		if cause := r.Wait(ctx, try); cause != nil {
			return response, errors.Join(cause, err)
		}
	}
}

// mayPass reports whether a read that failed may work with the next try. One
// that took all its time is left to the next Step.
func mayPass(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.Aborted:
		return true
	}
	return false
}

func isNotFound(err error) bool { return status.Code(err) == codes.NotFound }
