package apierror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/auth"
	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// call and late are what the TPU API answers to a call, and as the end of an operation.
func called(code codes.Code, said string, details ...protoadapt.MessageV1) error {
	s, err := status.New(code, said).WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return &calledError{err: s.Err()}
}

// calledError is the error of a call with the service's text, as engines return it.
type calledError struct{ err error }

func (e *calledError) Error() string {
	s := status.Convert(e.err)
	return fmt.Sprintf("create node: the service answered %s: %s", s.Code(), s.Message())
}

func (e *calledError) Unwrap() error { return e.err }

func late(code codes.Code, said string) error { return &LateError{Err: status.Error(code, said)} }

// rest is what Compute Engine answers to a call.
func rest(code int, reason, said string) error {
	body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"message":%[2]q,"domain":"global","reason":%q}]}}`, code, said, reason)
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(code)
	if _, err := io.WriteString(recorder, body); err != nil {
		panic(err)
	}
	return fmt.Errorf("insert instance: %w", googleapi.CheckResponse(recorder.Result()))
}

func TestErrorTable(t *testing.T) {
	disabled := &errdetails.ErrorInfo{Reason: "SERVICE_DISABLED", Domain: "googleapis.com"}
	for name, test := range map[string]struct {
		err  error
		want schema.ErrorKind
		says []string
	}{
		// Stockouts.
		"TPU: no more capacity": {
			late(codes.ResourceExhausted, "There is no more capacity in the zone \"us-west4-a\"; you can try in another zone where Cloud TPU Nodes are offered"),
			schema.ErrorCapacity, []string{"There is no more capacity", "none to give now"},
		},
		"TPU: operation out of resources": {late(codes.ResourceExhausted, "Request failed."), schema.ErrorCapacity, nil},
		"Compute: pool exhausted": {
			&OperationError{"ZONE_RESOURCE_POOL_EXHAUSTED", "The zone 'projects/acme/zones/us-west4-a' does not have enough resources available to fulfill the request."},
			schema.ErrorCapacity, []string{"does not have enough resources"},
		},
		"Compute: pool exhausted, with details": {
			&OperationError{"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "(resource type:compute)"}, schema.ErrorCapacity, nil,
		},
		"Compute: pool exhausted, at once": {
			rest(503, "backendError", "The zone 'us-west4-a' does not have enough resources available to fulfill the request."), schema.ErrorCapacity, nil,
		},
		// Quotas.
		"TPU: quota": {
			called(codes.ResourceExhausted, "Quota limit 'TPUV5sLitepodPerProjectPerRegionForTPUAPI' has been exceeded. Limit: 16 in region us-west4."),
			schema.ErrorQuota, []string{"TPUV5sLitepodPerProjectPerRegionForTPUAPI in us-west4 is used up", "iam-admin/quotas"},
		},
		"TPU: quota, late": {
			late(codes.ResourceExhausted, "Quota limit 'X' has been exceeded. Limit: 16 in zone us-west4-a."), schema.ErrorQuota, []string{"X in us-west4-a"},
		},
		"Compute: quota": {
			&OperationError{"QUOTA_EXCEEDED", "Quota 'PREEMPTIBLE_TPU_LITE_PODSLICE_V5' exceeded.  Limit: 0.0 in region us-west4."},
			schema.ErrorQuota, []string{"PREEMPTIBLE_TPU_LITE_PODSLICE_V5 in us-west4"},
		},
		"Compute: quota, at once": {
			rest(403, "quotaExceeded", "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-west4."), schema.ErrorQuota, []string{"the quota CPUS in us-west4"},
		},
		"Compute: quota of GPUs": {
			&OperationError{"QUOTA_EXCEEDED", "Quota 'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded.  Limit: 0.0 in region us-central1."},
			schema.ErrorQuota, []string{"the quota PREEMPTIBLE_NVIDIA_H100_GPUS in us-central1 is used up", "iam-admin/quotas"},
		},
		"Compute: quota of GPUs by family": {
			&OperationError{"QUOTA_EXCEEDED", "Quota 'GPUS_PER_GPU_FAMILY' exceeded.  Limit: 8.0 in region us-central1. (gpu_family NVIDIA_H200)"},
			schema.ErrorQuota, []string{"the quota GPUS_PER_GPU_FAMILY of NVIDIA_H200 in us-central1 is used up"},
		},
		"Compute: quota of GPUs everywhere": {
			rest(403, "quotaExceeded", "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."),
			schema.ErrorQuota, []string{"the quota GPUS_ALL_REGIONS in all regions is used up"},
		},
		"Compute: no GPUs in the region": {
			&OperationError{"REGION_RESOURCE_POOL_EXHAUSTED", "The region does not have them."}, schema.ErrorCapacity, nil,
		},
		"Compute: no GPUs, at once": {rest(503, "insufficientCapacity", "Not available now."), schema.ErrorCapacity, nil},
		"Compute: GPUs that do not go with the machine": {
			rest(400, "badRequest", "[n2-standard-32, nvidia-tesla-t4] features are not compatible for creating instance."),
			schema.ErrorInvalid, []string{"[n2-standard-32, nvidia-tesla-t4]"},
		},
		"Compute: a machine with GPUs that would migrate": {
			&OperationError{"UNSUPPORTED_OPERATION", "Instances with guest accelerators do not support live migration."}, schema.ErrorInvalid, nil,
		},
		// Rates.
		"TPU: rate": {
			called(codes.ResourceExhausted, "Quota exceeded for quota metric 'CreateNode requests' and limit 'CreateNode requests per minute' of service 'tpu.googleapis.com'"),
			schema.ErrorRate, []string{"CreateNode requests per minute", "more slowly"},
		},
		"TPU: too many without words": {called(codes.ResourceExhausted, "Resource has been exhausted"), schema.ErrorRate, nil},
		"Compute: rate": {
			rest(403, "rateLimitExceeded", "Quota exceeded for quota group 'ReadGroup'"), schema.ErrorRate, nil,
		},
		"Compute: 429": {rest(429, "", "Too Many Requests"), schema.ErrorRate, nil},
		// Reservations.
		"TPU: reservation": {late(codes.FailedPrecondition, "Insufficient reserved capacity."), schema.ErrorReservation, []string{"in use"}},
		"Compute: reservation": {
			&OperationError{"UNAVAILABLE", "Specified reservation 'big' does not have enough resources available for the request."}, schema.ErrorReservation, nil,
		},
		"Compute: reservation by its code": {
			&OperationError{"RESERVATION_CAPACITY_EXCEEDED", "Specified reservations [ours] do not have available resources for the request."}, schema.ErrorReservation, []string{"in use"},
		},
		// Preempted during create.
		"TPU: preempted": {
			late(codes.InvalidArgument, "Operation is not supported while in state PREEMPTED"), schema.ErrorPreempted, []string{"taken away"},
		},
		"Compute: unsupported operation": {&OperationError{"UNSUPPORTED_OPERATION", "Instance is being stopped"}, schema.ErrorPreempted, nil},
		// What passes.
		"TPU: unavailable":           {called(codes.Unavailable, "connection refused"), schema.ErrorUnavailable, []string{"connection refused"}},
		"TPU: internal":              {called(codes.Internal, "internal error, invalid state"), schema.ErrorUnavailable, nil},
		"TPU: internal, late":        {late(codes.Internal, "invalid state"), schema.ErrorUnavailable, nil},
		"TPU: unknown":               {called(codes.Unknown, "?"), schema.ErrorUnavailable, nil},
		"TPU: aborted":               {called(codes.Aborted, "conflict with another operation"), schema.ErrorUnavailable, nil},
		"TPU: deadline":              {called(codes.DeadlineExceeded, "context deadline exceeded"), schema.ErrorUnavailable, nil},
		"TPU: valid_until is over":   {late(codes.DeadlineExceeded, "deadline expired"), schema.ErrorCapacity, []string{"time in the queue"}},
		"TPU: other precondition":    {called(codes.FailedPrecondition, "the node is being changed"), schema.ErrorUnavailable, nil},
		"Compute: 500":               {rest(500, "internalError", "boom"), schema.ErrorUnavailable, []string{"the service answered 500: boom"}},
		"Compute: 502":               {rest(502, "", ""), schema.ErrorUnavailable, nil},
		"Compute: 503":               {rest(503, "backendError", "try again"), schema.ErrorUnavailable, nil},
		"Compute: not ready":         {&OperationError{"RESOURCE_NOT_READY", "not ready"}, schema.ErrorUnavailable, nil},
		"Compute: internal, late":    {&OperationError{"INTERNAL_ERROR", ""}, schema.ErrorUnavailable, []string{"INTERNAL_ERROR"}},
		"nothing that anybody knows": {errors.New("dial tcp: connection refused"), schema.ErrorUnavailable, nil},
		"the caller's end":           {context.Canceled, schema.ErrorUnavailable, nil},
		// Rights.
		"TPU: permission": {
			called(codes.PermissionDenied, "Permission 'tpu.nodes.create' denied on 'projects/acme/locations/us-west4-a'"),
			schema.ErrorPermission, []string{"grant tpu.nodes.create", "roles/tpu.admin"},
		},
		"TPU: permission without words": {called(codes.PermissionDenied, "The caller does not have permission"), schema.ErrorPermission, []string{"owner"}},
		"Compute: permission": {
			rest(403, "forbidden", "Required 'compute.instances.create' permission for 'projects/acme/zones/us-west4-a/instances/one'"),
			schema.ErrorPermission, []string{"grant compute.instances.create", "roles/compute.admin"},
		},
		"Compute: service account": {
			rest(400, "badRequest", "The user does not have access to service account 'sa'.  User: 'me'.  Ask a project owner to grant you the iam.serviceAccountUser role on the service account"),
			schema.ErrorInvalid, []string{"iam.serviceAccountUser"},
		},
		"TPU: API disabled": {
			called(codes.PermissionDenied, "Cloud TPU API has not been used in project 123 before or it is disabled. Enable it by visiting "+
				"https://console.developers.googleapis.com/apis/api/tpu.googleapis.com/overview?project=123 then retry.", disabled),
			schema.ErrorPermission, []string{"enable the API tpu.googleapis.com", "gcloud services enable tpu.googleapis.com"},
		},
		"Compute: API disabled": {
			rest(403, "accessNotConfigured", "Compute Engine API has not been used in project 123 before or it is disabled. Enable it by visiting "+
				"https://console.developers.googleapis.com/apis/api/compute.googleapis.com/overview?project=123 then retry."),
			schema.ErrorPermission, []string{"gcloud services enable compute.googleapis.com"},
		},
		"billing":              {called(codes.PermissionDenied, "This API method requires billing to be enabled. (BILLING_DISABLED)"), schema.ErrorPermission, []string{"billing account"}},
		"TPU: unauthenticated": {called(codes.Unauthenticated, "Request had invalid authentication credentials."), schema.ErrorPermission, []string{"gcloud auth"}},
		"TPU: token revoked": {
			called(codes.Unauthenticated, `transport: per-RPC creds failed due to error: {"error":"invalid_grant"}`), schema.ErrorPermission, []string{"gcloud auth"},
		},
		"TPU: token cannot be fetched": {
			called(codes.Unauthenticated, "transport: per-RPC creds failed due to error: dial tcp: lookup oauth2.googleapis.com: no such host"), schema.ErrorUnavailable, nil,
		},
		"Compute: token revoked": {
			&auth.Error{Response: &http.Response{StatusCode: 400}, Body: []byte("invalid_grant")}, schema.ErrorPermission, []string{"gcloud auth"},
		},
		"Compute: 401": {rest(401, "authError", "Invalid Credentials"), schema.ErrorPermission, []string{"gcloud auth"}},
		// What can never work.
		"TPU: zone": {called(codes.NotFound, "Location us-west9-a is not found or access is unauthorized."), schema.ErrorInvalid, []string{"correct the name"}},
		"TPU: type": {called(codes.InvalidArgument, "the accelerator v5litepod-17 was not found in zone us-west4-a"), schema.ErrorInvalid, nil},
		"Compute: network": {
			rest(404, "notFound", "The resource 'projects/acme/global/networks/none' was not found"), schema.ErrorInvalid, []string{"networks/none"},
		},
		"Compute: field":         {rest(400, "invalid", "Invalid value for field 'resource.labels'"), schema.ErrorInvalid, nil},
		"Compute: invalid, late": {&OperationError{"INVALID_FIELD_VALUE", "no"}, schema.ErrorInvalid, nil},
		// Names.
		"TPU: exists":           {called(codes.AlreadyExists, "Resource 'one' already exists"), schema.ErrorConflict, nil},
		"Compute: exists":       {rest(409, "alreadyExists", "The resource 'one' already exists"), schema.ErrorConflict, nil},
		"Compute: exists, late": {&OperationError{"RESOURCE_ALREADY_EXISTS", "exists"}, schema.ErrorConflict, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := Wrap("create slice", "one", test.err)
			wantWrapped(t, err, test.want, append(test.says, "create slice one: ")...)
			if !errors.Is(err, test.err) {
				t.Error("what was classified is not in it")
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "rpc error") {
				t.Errorf("the error %q is not for people", err)
			}
		})
	}
}

func TestErrorSaysHowLong(t *testing.T) {
	err := called(codes.ResourceExhausted, "per minute", &errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if got := wantWrapped(t, Wrap("create slice", "one", err), schema.ErrorRate); got != 7*time.Second {
		t.Errorf("it is to be left alone for %v", got)
	}
}

func TestNoErrorIsNone(t *testing.T) {
	if err := Wrap("create slice", "one", nil); err != nil {
		t.Error(err)
	}
}

// wantWrapped returns for how long the error is to be left alone.
func wantWrapped(t *testing.T, err error, want schema.ErrorKind, words ...string) (after time.Duration) {
	t.Helper()
	classified, ok := errors.AsType[*providers.Error](err)
	if !ok {
		t.Fatalf("the error is %v, want a providers.Error of kind %s", err, want)
	}
	if classified.Kind != want {
		t.Errorf("the error %q is of kind %s, want %s", err, classified.Kind, want)
	}
	for _, each := range words {
		if !strings.Contains(err.Error(), each) {
			t.Errorf("the error %q does not say %q", err, each)
		}
	}
	return classified.After
}
