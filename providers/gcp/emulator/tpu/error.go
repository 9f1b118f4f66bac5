package tpu

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// codeOf is the canonical code of a reason, of a call as of an operation.
func codeOf(reason cloud.Reason) codes.Code {
	switch reason {
	case cloud.ReasonInvalid, cloud.ReasonState:
		return codes.InvalidArgument
	case cloud.ReasonExists:
		return codes.AlreadyExists
	case cloud.ReasonNotFound:
		return codes.NotFound
	case cloud.ReasonPrecondition, cloud.ReasonReservation:
		return codes.FailedPrecondition
	case cloud.ReasonStockout, cloud.ReasonQuota, cloud.ReasonRate:
		return codes.ResourceExhausted
	case cloud.ReasonInternal:
		return codes.Internal
	case cloud.ReasonUnavailable:
		return codes.Unavailable
	case cloud.ReasonDenied, cloud.ReasonDisabled:
		return codes.PermissionDenied
	case cloud.ReasonUnauthenticated:
		return codes.Unauthenticated
	case cloud.ReasonCancelled:
		return codes.Canceled
	case cloud.ReasonExpired:
		return codes.DeadlineExceeded
	}
	return codes.Unknown
}

// statusOf is an error of the model as the TPU API sends it.
func statusOf(err error) error {
	var rejected *cloud.Error
	if !errors.As(err, &rejected) {
		return err
	}
	s := status.New(codeOf(rejected.Reason), rejected.Message)
	var detail protoadapt.MessageV1
	switch rejected.Reason {
	case cloud.ReasonDenied:
		detail = &errdetails.ErrorInfo{
			Reason: "IAM_PERMISSION_DENIED", Domain: "iam.googleapis.com", Metadata: map[string]string{"permission": rejected.Permission},
		}
	case cloud.ReasonDisabled:
		detail = &errdetails.ErrorInfo{
			Reason: "SERVICE_DISABLED", Domain: "googleapis.com", Metadata: map[string]string{"service": rejected.API},
		}
	case cloud.ReasonQuota, cloud.ReasonRate:
		detail = &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Description: rejected.Message}}}
	case cloud.ReasonInvalid, cloud.ReasonState, cloud.ReasonExists, cloud.ReasonNotFound, cloud.ReasonPrecondition,
		cloud.ReasonReservation, cloud.ReasonStockout, cloud.ReasonInternal, cloud.ReasonUnavailable, cloud.ReasonUnauthenticated,
		cloud.ReasonCancelled, cloud.ReasonExpired:
		return s.Err()
	}
	if with, err := s.WithDetails(detail); err == nil {
		s = with
	}
	return s.Err()
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "Cloud TPU received an invalid argument. "+format, args...)
}

func notFound(resource string) *cloud.Error {
	return &cloud.Error{Reason: cloud.ReasonNotFound, Message: "Resource '" + resource + "' was not found"}
}
