package apierror

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/schema"
)

// Answer is what a service answered, over gRPC, REST, or as the end of an operation.
type Answer struct {
	Code    codes.Code // those of REST are translated
	Reason  string     // for programs: "SERVICE_DISABLED", "ZONE_RESOURCE_POOL_EXHAUSTED"
	Message string
	late    bool // by an operation, not by a call
	after   time.Duration
}

// AnswerOf reads the answer of a service from an error; false if it has none.
func AnswerOf(err error) (Answer, bool) {
	if e, ok := errors.AsType[*OperationError](err); ok {
		return Answer{Code: codes.Unknown, Reason: e.Code, Message: e.Message, late: true}, true
	}
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		a := Answer{Code: codeOf(e.Code), Message: e.Message + e.Body}
		for _, item := range e.Errors {
			a.Reason = cmp.Or(a.Reason, item.Reason)
		}
		for _, reason := range detailedReasons() {
			if strings.Contains(e.Body, `"`+reason+`"`) {
				a.Reason = reason
			}
		}
		return a, true
	}
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return Answer{}, false
	}
	_, late := errors.AsType[*LateError](err)
	a := Answer{Code: s.Code(), Message: s.Message(), late: late}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			a.Reason = d.GetReason()
		case *errdetails.RetryInfo:
			a.after = d.GetRetryDelay().AsDuration()
		}
	}
	return a, true
}

// detailedReasons are the reasons of google.rpc.ErrorInfo that matter here; over
// REST they stand in the body only.
func detailedReasons() []string {
	return []string{"SERVICE_DISABLED", "BILLING_DISABLED", "RATE_LIMIT_EXCEEDED", "QUOTA_EXCEEDED", "IAM_PERMISSION_DENIED", "USER_PROJECT_DENIED"}
}

// codeOf is the code of gRPC that goes with a status of HTTP.
func codeOf(status int) codes.Code {
	switch status {
	case http.StatusBadRequest:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound, http.StatusGone:
		return codes.NotFound
	case http.StatusConflict:
		return codes.AlreadyExists
	case http.StatusPreconditionFailed:
		return codes.FailedPrecondition
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusNotImplemented:
		return codes.Unimplemented
	}
	if status >= 400 && status < 500 {
		return codes.InvalidArgument
	}
	return codes.Unavailable
}

// Has reports whether the answer has one of these in its message or its reason.
func (a Answer) Has(words ...string) bool {
	for _, each := range words {
		if strings.EqualFold(a.Reason, each) || strings.Contains(strings.ToLower(a.Message), strings.ToLower(each)) {
			return true
		}
	}
	return false
}

// finding goes from what the services say in so many words to what their codes
// mean: one code stands for a stockout, a quota and a rate, and a stockout has
// several codes.
func (a Answer) finding() Finding {
	switch {
	case a.Has("insufficient reserved capacity", "RESERVATION_CAPACITY_EXCEEDED") || a.Has("reservation") && !a.Has("quota") && a.Has("insufficient", "does not have enough", "not have available resources", "exhausted"):
		return Finding{Kind: schema.ErrorReservation, do: "what is reserved is in use; it is had when some of it is free"}
	case a.Has("no more capacity in the zone", "ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
		"does not have enough resources available", "STOCKOUT", "REGION_RESOURCE_POOL_EXHAUSTED", "insufficientCapacity"):
		return Finding{Kind: schema.ErrorCapacity, do: "that zone has none to give now"}
	case a.preempted():
		return Finding{Kind: schema.ErrorPreempted, do: "it was taken away before it was up"}
	case a.Code == codes.Unauthenticated:
		return a.unauthenticated()
	case a.Has("SERVICE_DISABLED", "accessNotConfigured", "has not been used in project", "BILLING_DISABLED", "IAM_PERMISSION_DENIED"):
		return a.forbidden()
	case a.Has("RATE_LIMIT_EXCEEDED", "rateLimitExceeded", "userRateLimitExceeded", "per minute", "per second", "rate limit exceeded"):
		return Finding{Kind: schema.ErrorRate, after: a.after, do: "it is asked for again more slowly"}
	case a.Has("QUOTA_EXCEEDED", "QUOTA_LIMIT", "quotaExceeded") || a.Code == codes.ResourceExhausted && a.Has("quota"):
		return a.quota()
	}
	return a.byCode()
}

func (a Answer) preempted() bool {
	if a.Has("do not support live migration", "features are not compatible") {
		return false // and will not be possible the next time
	}
	return a.Has("UNSUPPORTED_OPERATION") || a.Has("PREEMPTED") && a.Has("not supported while in state", "was preempted")
}

func (a Answer) byCode() Finding {
	switch a.Code {
	case codes.DeadlineExceeded:
		if a.late {
			return Finding{Kind: schema.ErrorCapacity, do: "its time in the queue was over before there was any"}
		}
	case codes.ResourceExhausted:
		if a.late {
			return Finding{Kind: schema.ErrorCapacity, do: "that zone has none to give now"}
		}
		return Finding{Kind: schema.ErrorRate, after: a.after, do: "it is asked for again more slowly"}
	case codes.PermissionDenied:
		return a.forbidden()
	case codes.AlreadyExists:
		return Finding{Kind: schema.ErrorConflict}
	case codes.NotFound:
		return Finding{Kind: schema.ErrorInvalid, do: "correct the name, or create the resource that it names; accounts without permission to see it get the same answer"}
	case codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented:
		return Finding{Kind: schema.ErrorInvalid, do: "correct what the service rejects"}
	}
	return a.byReason()
}

// byReason is for Compute Engine's operations, which have a reason but no code.
func (a Answer) byReason() Finding {
	switch {
	case strings.HasPrefix(a.Reason, "INVALID"), a.Reason == "RESOURCE_NOT_FOUND", a.Reason == "CONDITION_NOT_MET", a.Reason == "UNSUPPORTED_OPERATION":
		return Finding{Kind: schema.ErrorInvalid, do: "correct what the service rejects"}
	case a.Reason == "RESOURCE_ALREADY_EXISTS":
		return Finding{Kind: schema.ErrorConflict}
	case a.Reason == "PERMISSIONS_ERROR", a.Reason == "FORBIDDEN":
		return a.forbidden()
	}
	return Finding{Kind: schema.ErrorUnavailable, after: a.after}
}

// unauthenticated distinguishes credentials that are rejected from a token that could
// not be fetched, which may be a matter of the network.
func (a Answer) unauthenticated() Finding {
	if a.Has("per-RPC creds failed") && !a.Has("invalid_grant", "invalid_rapt", "invalid_client", "unauthorized_client", "could not find default") {
		return Finding{Kind: schema.ErrorUnavailable}
	}
	return Finding{Kind: schema.ErrorPermission, do: "the credentials are missing, have expired or were revoked: " + login}
}

// quota returns which one, where the service does.
func (a Answer) quota() Finding {
	which := "a quota"
	if found := regexp.MustCompile(`(?i)quota(?: limit| metric)? '([^']+)'`).FindStringSubmatch(a.Message); found != nil {
		which = "the quota " + found[1]
	}
	// One quota counts the GPUs of all families, each by itself.
	if found := regexp.MustCompile(`gpu_family\W+(\w+)`).FindStringSubmatch(a.Message); found != nil {
		which += " of " + found[1]
	}
	where := ""
	if regexp.MustCompile(`Limit: [0-9.]+ globally`).MatchString(a.Message) {
		where = " in all regions"
	}
	if found := regexp.MustCompile(`in (?:region|zone) ([a-z]+-[a-z0-9-]+)`).FindStringSubmatch(a.Message); found != nil {
		where = " in " + found[1]
	}
	return Finding{
		Kind: schema.ErrorQuota,
		do:   which + where + " is used up: free some, or ask for more at https://console.cloud.google.com/iam-admin/quotas",
	}
}

// forbidden returns which API, permission or project it takes.
func (a Answer) forbidden() Finding {
	f := Finding{Kind: schema.ErrorPermission}
	api := cmp.Or(regexp.MustCompile(`[a-z]+\.googleapis\.com`).FindString(strings.ReplaceAll(a.Message, "console.developers.googleapis.com", "")), "of the service")
	switch {
	case a.Has("SERVICE_DISABLED", "accessNotConfigured", "has not been used in project"):
		f.do = fmt.Sprintf("enable the API %s (https://console.cloud.google.com/apis/library/%[1]s, or `gcloud services enable %[1]s`) and wait for some minutes", api)
	case a.Has("BILLING_DISABLED", "billing"):
		f.do = "the project has no billing account: link one at https://console.cloud.google.com/billing/projects"
	default:
		missing := a.Permission()
		if missing == "" {
			f.do = "have the project's owner grant these credentials the right, or use others"
			break
		}
		f.do = fmt.Sprintf("have the project's owner grant %s to the account of these credentials (%s has it), or use others", missing, RoleOf(missing))
	}
	return f
}

// Permission is the one that is missing, "" if the service does not state it.
func (a Answer) Permission() string {
	return regexp.MustCompile(`\b(?:tpu|compute|iam|resourcemanager|serviceusage)\.[a-z][A-Za-z]*\.[a-z][A-Za-z]*\b`).FindString(a.Message)
}

// RoleOf is a predefined role with a permission.
func RoleOf(permission string) string {
	switch service, _, _ := strings.Cut(permission, "."); service {
	case "tpu":
		return "roles/tpu.admin"
	case "iam":
		return "roles/iam.serviceAccountUser"
	case "compute":
		return "roles/compute.admin"
	}
	return "roles/editor"
}

// IsOfProject reports whether the answer is about the project as such.
func (a Answer) IsOfProject() bool {
	if a.Has("USER_PROJECT_DENIED", "CONSUMER_INVALID", "RESOURCE_PROJECT_INVALID", "Unknown project id", "Project not found") {
		return true
	}
	return (a.Code == codes.NotFound || a.Code == codes.InvalidArgument) && a.Has("project")
}
