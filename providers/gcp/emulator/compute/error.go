package compute

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// apiError is a rejection as Compute Engine's REST API answers it.
type apiError struct {
	status  int
	reason  string
	domain  string // "": global
	message string
	details []any
}

func (e *apiError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &apiError{status: http.StatusBadRequest, reason: "invalid", message: fmt.Sprintf(format, args...)}
}

func missing(resource string) error {
	return &apiError{status: http.StatusNotFound, reason: "notFound", message: fmt.Sprintf("The resource '%s' was not found", resource)}
}

func exists(resource string) *apiError {
	return &apiError{status: http.StatusConflict, reason: "alreadyExists", message: fmt.Sprintf("The resource '%s' already exists", resource)}
}

func inUse(resource, user string) error {
	return &apiError{status: http.StatusBadRequest, reason: "resourceInUseByAnotherResource",
		message: fmt.Sprintf("The resource '%s' is already being used by '%s'", resource, user)}
}

func stale(what string) error {
	return &apiError{status: http.StatusPreconditionFailed, reason: "conditionNotMet", message: what}
}

// errorOf is an error as this API answers it.
func errorOf(err error, r *request) *apiError {
	if known, ok := errors.AsType[*apiError](err); ok {
		return known
	}
	rejected, ok := errors.AsType[*cloud.Error](err)
	if !ok {
		return &apiError{status: http.StatusInternalServerError, reason: "internalError", message: err.Error()}
	}
	e := &apiError{message: rejected.Message, domain: "global"}
	switch rejected.Reason {
	case cloud.ReasonInvalid, cloud.ReasonPrecondition:
		e.status, e.reason = http.StatusBadRequest, "invalid"
	case cloud.ReasonState:
		e.status, e.reason = http.StatusBadRequest, "resourceNotReady"
		e.message = fmt.Sprintf("The resource '%s' is not ready", r.resource())
	case cloud.ReasonExists:
		e = exists(r.resource())
	case cloud.ReasonNotFound:
		e.status, e.reason, e.message = http.StatusNotFound, "notFound", fmt.Sprintf("The resource '%s' was not found", r.resource())
	case cloud.ReasonStockout, cloud.ReasonReservation:
		e.status, e.reason = http.StatusServiceUnavailable, "insufficientCapacity"
	case cloud.ReasonQuota:
		e.status, e.reason, e.domain, e.message = http.StatusForbidden, "quotaExceeded", "usageLimits", quotaMessage(rejected)
	case cloud.ReasonRate:
		e.status, e.reason, e.domain = http.StatusForbidden, "rateLimitExceeded", "usageLimits"
		e.message = fmt.Sprintf("Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service "+
			"'compute.googleapis.com' for consumer 'project:%s'.", r.project)
	case cloud.ReasonInternal:
		e.status, e.reason = http.StatusInternalServerError, "backendError"
	case cloud.ReasonUnavailable:
		e.status, e.reason = http.StatusServiceUnavailable, "backendError"
	case cloud.ReasonDenied:
		e.status, e.reason = http.StatusForbidden, "forbidden"
		e.message = fmt.Sprintf("Required '%s' permission for '%s'", rejected.Permission, r.resource())
	case cloud.ReasonDisabled:
		e.status, e.reason, e.domain = http.StatusForbidden, "accessNotConfigured", "usageLimits"
		e.details = []any{disabledDetail(rejected, r.project)}
	case cloud.ReasonUnauthenticated:
		e.status, e.reason = http.StatusUnauthorized, "authError"
	case cloud.ReasonCancelled, cloud.ReasonExpired:
		e.status, e.reason = http.StatusConflict, "aborted"
	}
	return e
}

func disabledDetail(rejected *cloud.Error, project string) any {
	return map[string]any{
		"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED", "domain": "googleapis.com",
		"metadata": map[string]string{"service": rejected.API, "consumer": "projects/" + project},
	}
}

// quotaMessage is the service's, which has two spaces there.
func quotaMessage(rejected *cloud.Error) string {
	where := "in region " + rejected.Region + "."
	if rejected.Region == cloud.RegionGlobal {
		where = "globally."
	}
	return fmt.Sprintf("Quota '%s' exceeded.  Limit: %.1f %s", quotaMetric(rejected.Type, rejected.Tier), float64(rejected.Limit), where)
}

func writeError(w http.ResponseWriter, e *apiError) {
	if e.domain == "" {
		e.domain = "global"
	}
	body := map[string]any{
		"code": e.status, "message": e.message,
		"errors": []any{map[string]string{"message": e.message, "domain": e.domain, "reason": e.reason}},
	}
	if len(e.details) > 0 {
		body["details"] = e.details
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": body}) // fails only without a reader
}

// operationFailure is how an operation reports its failure.
type operationFailure struct {
	status  int
	phrase  string
	code    string
	message string
	details []computeapi.ErrorDetail
}

// failureOf is what an operation on a resource reports of an error.
func failureOf(rejected *cloud.Error, resource string) operationFailure {
	switch rejected.Reason {
	case cloud.ReasonStockout:
		return stockoutFailure(rejected)
	case cloud.ReasonReservation:
		return operationFailure{http.StatusBadRequest, "BAD REQUEST", "RESERVATION_CAPACITY_EXCEEDED",
			fmt.Sprintf("Specified reservation does not have available resources for the request for '%s'.", resource), nil}
	case cloud.ReasonQuota:
		return operationFailure{http.StatusForbidden, "FORBIDDEN", "QUOTA_EXCEEDED", quotaMessage(rejected), quotaDetails(rejected)}
	case cloud.ReasonRate:
		return operationFailure{http.StatusForbidden, "FORBIDDEN", "RATE_LIMIT_EXCEEDED", rejected.Message, nil}
	case cloud.ReasonState, cloud.ReasonPrecondition, cloud.ReasonExpired:
		return operationFailure{http.StatusBadRequest, "BAD REQUEST", "UNSUPPORTED_OPERATION",
			fmt.Sprintf("The operation is not supported: '%s' was preempted or is not in the right state.", resource), nil}
	case cloud.ReasonNotFound, cloud.ReasonCancelled:
		return operationFailure{http.StatusNotFound, "NOT FOUND", "RESOURCE_NOT_FOUND", fmt.Sprintf("The resource '%s' was not found", resource), nil}
	case cloud.ReasonExists:
		return operationFailure{http.StatusConflict, "CONFLICT", "RESOURCE_ALREADY_EXISTS", fmt.Sprintf("The resource '%s' already exists", resource), nil}
	case cloud.ReasonInvalid:
		return operationFailure{http.StatusBadRequest, "BAD REQUEST", "INVALID_FIELD_VALUE", rejected.Message, nil}
	case cloud.ReasonDenied, cloud.ReasonDisabled, cloud.ReasonUnauthenticated:
		return operationFailure{http.StatusForbidden, "FORBIDDEN", "PERMISSIONS_ERROR", rejected.Message, nil}
	case cloud.ReasonInternal, cloud.ReasonUnavailable:
	}
	return operationFailure{http.StatusInternalServerError, "INTERNAL SERVER ERROR", "INTERNAL_ERROR",
		"Internal error. Please try again or contact Google Support. (Code: '-1')", nil}
}

// stockoutFailure is the plain form or the one with details, by the zone: the
// service has both.
func stockoutFailure(rejected *cloud.Error) operationFailure {
	f := operationFailure{http.StatusServiceUnavailable, "SERVICE UNAVAILABLE", "ZONE_RESOURCE_POOL_EXHAUSTED", fmt.Sprintf(
		"The zone '%s' does not have enough resources available to fulfill the request.  Try a different zone, or try again later.",
		rejected.Zone), nil}
	if len(rejected.Zone)%2 == 0 {
		return f
	}
	f.code = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
	f.details = []computeapi.ErrorDetail{{ErrorInfo: computeapi.ErrorInfo{
		Reason: "resource_availability", Domain: "compute.googleapis.com",
		Metadatas: map[string]string{"zone": rejected.Zone, "vmType": rejected.Type, "zonesAvailable": "", "attachment": ""},
	}}}
	return f
}

func quotaDetails(rejected *cloud.Error) []computeapi.ErrorDetail {
	info := computeapi.QuotaInfo{
		MetricName: "compute.googleapis.com/" + rejected.Type, LimitName: quotaMetric(rejected.Type, rejected.Tier),
		Limit: float64(rejected.Limit), Dimensions: map[string]string{"region": rejected.Region},
	}
	if cloud.IsGPU(rejected.Type) || rejected.Type == cloud.TypeGPU {
		metric := quotaMetric(rejected.Type, rejected.Tier)
		place := "-per-project-region"
		if rejected.Region == cloud.RegionGlobal {
			place, info.Dimensions = "-per-project", map[string]string{"global": "global"}
		}
		info.MetricName = "compute.googleapis.com/" + strings.ToLower(metric)
		info.LimitName = strings.ReplaceAll(metric, "_", "-") + place
		if countsByFamily(rejected.Type) && rejected.Tier != cloud.TierSpot {
			info.Dimensions["gpu_family"] = gpuFamily(rejected.Type)
		}
	}
	return []computeapi.ErrorDetail{{QuotaInfo: info}}
}

// errorList is how all resources that hold an operation's errors do.
func (f operationFailure) errorList() computeapi.ErrorList {
	return computeapi.ErrorList{Errors: []computeapi.Error{{Code: f.code, Message: f.message, ErrorDetails: f.details}}}
}
