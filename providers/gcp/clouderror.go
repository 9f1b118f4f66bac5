package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// kindError is an error whose kind is known where it arises.
type kindError struct {
	kind  schema.ErrorKind
	after time.Duration // providers.Error's
	err   error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

func failf(kind schema.ErrorKind, format string, args ...any) error {
	return &kindError{kind: kind, err: fmt.Errorf(format, args...)}
}

// operationError is an error of an operation of Compute Engine, which names it
// by a word where everything else has a number.
type operationError struct {
	Code    string // "ZONE_RESOURCE_POOL_EXHAUSTED"
	Message string
}

func (e *operationError) Error() string { return cmp.Or(e.Message, e.Code) }

// lateError is an error with which an operation of the TPU API has ended. What
// such an operation runs out of are resources; a call runs out of calls.
type lateError struct{ err error }

func (e *lateError) Error() string { return cmp.Or(status.Convert(e.err).Message(), e.err.Error()) }
func (e *lateError) Unwrap() error { return e.err }

// classified wraps an error once, at the provider's boundary.
func classified(op, name string, err error) error {
	if err == nil {
		return nil
	}
	f := findingOf(err)
	if f.do != "" {
		err = fmt.Errorf("%w; %s", legibly(err), f.do)
	} else {
		err = legibly(err)
	}
	return &providers.Error{Kind: f.kind, Op: op, Name: name, Err: err, After: f.after}
}

// kindOfError is the kind of an error of an engine, "" for none.
func kindOfError(err error) schema.ErrorKind {
	if err == nil {
		return ""
	}
	return findingOf(err).kind
}

// finding is what an error means, and what to do about it.
type finding struct {
	kind  schema.ErrorKind
	do    string
	after time.Duration
}

// findingOf classifies whatever the services and the ways to them answer.
func findingOf(err error) finding {
	if known, ok := errors.AsType[*kindError](err); ok {
		return finding{kind: known.kind, after: known.after}
	}
	if a, ok := cloudAnswerOf(err); ok {
		return a.finding()
	}
	if token, ok := errors.AsType[*auth.Error](err); ok && !token.Temporary() {
		return finding{kind: schema.ErrorPermission, do: "the credentials have expired or were revoked: " + login}
	}
	return finding{kind: schema.ErrorUnavailable}
}

// cloudAnswer is what a service answered, over gRPC, REST, or as the end of an operation.
type cloudAnswer struct {
	code   codes.Code // those of REST are translated
	reason string     // for programs: "SERVICE_DISABLED", "ZONE_RESOURCE_POOL_EXHAUSTED"
	said   string
	late   bool // by an operation, not by a call
	after  time.Duration
}

func cloudAnswerOf(err error) (cloudAnswer, bool) {
	if e, ok := errors.AsType[*operationError](err); ok {
		return cloudAnswer{code: codes.Unknown, reason: e.Code, said: e.Message, late: true}, true
	}
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		a := cloudAnswer{code: codeOf(e.Code), said: e.Message + e.Body}
		for _, item := range e.Errors {
			a.reason = cmp.Or(a.reason, item.Reason)
		}
		for _, reason := range detailedReasons() {
			if strings.Contains(e.Body, `"`+reason+`"`) {
				a.reason = reason
			}
		}
		return a, true
	}
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return cloudAnswer{}, false
	}
	_, late := errors.AsType[*lateError](err)
	a := cloudAnswer{code: s.Code(), said: s.Message(), late: late}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			a.reason = d.GetReason()
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

// has reports whether the answer has one of these in its words or its reason.
func (a cloudAnswer) has(words ...string) bool {
	for _, each := range words {
		if strings.EqualFold(a.reason, each) || strings.Contains(strings.ToLower(a.said), strings.ToLower(each)) {
			return true
		}
	}
	return false
}

// finding goes from what the services say in so many words to what their codes
// mean: one code stands for a stockout, a quota and a rate, and a stockout has
// several codes.
func (a cloudAnswer) finding() finding {
	switch {
	case a.has("insufficient reserved capacity") || a.has("reservation") && !a.has("quota") && a.has("insufficient", "does not have enough", "exhausted"):
		return finding{kind: schema.ErrorReservation, do: "what is reserved is in use; it is had when some of it is free"}
	case a.has("no more capacity in the zone", "ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
		"does not have enough resources available", "STOCKOUT"):
		return finding{kind: schema.ErrorCapacity, do: "that zone has none to give now"}
	case a.preempted():
		return finding{kind: schema.ErrorPreempted, do: "it was taken away before it was up"}
	case a.code == codes.Unauthenticated:
		return a.unauthenticated()
	case a.has("SERVICE_DISABLED", "accessNotConfigured", "has not been used in project", "BILLING_DISABLED", "IAM_PERMISSION_DENIED"):
		return a.forbidden()
	case a.has("RATE_LIMIT_EXCEEDED", "rateLimitExceeded", "userRateLimitExceeded", "per minute", "per second", "rate limit exceeded"):
		return finding{kind: schema.ErrorRate, after: a.after, do: "it is asked for again more slowly"}
	case a.has("QUOTA_EXCEEDED", "QUOTA_LIMIT", "quotaExceeded") || a.code == codes.ResourceExhausted && a.has("quota"):
		return a.quota()
	}
	return a.byCode()
}

func (a cloudAnswer) preempted() bool {
	return a.has("UNSUPPORTED_OPERATION") || a.has("PREEMPTED") && a.has("not supported while in state", "was preempted")
}

func (a cloudAnswer) byCode() finding {
	switch a.code {
	case codes.DeadlineExceeded:
		if a.late {
			return finding{kind: schema.ErrorCapacity, do: "its time in the queue was over before there was any"}
		}
	case codes.ResourceExhausted:
		if a.late {
			return finding{kind: schema.ErrorCapacity, do: "that zone has none to give now"}
		}
		return finding{kind: schema.ErrorRate, after: a.after, do: "it is asked for again more slowly"}
	case codes.PermissionDenied:
		return a.forbidden()
	case codes.AlreadyExists:
		return finding{kind: schema.ErrorConflict}
	case codes.NotFound:
		return finding{kind: schema.ErrorInvalid, do: "mend the name, or make what it names; somebody who may not see it is told the same"}
	case codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented:
		return finding{kind: schema.ErrorInvalid, do: "mend what the service refuses"}
	}
	return a.byReason()
}

// byReason is for Compute Engine's operations, which have no code but a word.
func (a cloudAnswer) byReason() finding {
	switch {
	case strings.HasPrefix(a.reason, "INVALID"), a.reason == "RESOURCE_NOT_FOUND", a.reason == "CONDITION_NOT_MET":
		return finding{kind: schema.ErrorInvalid, do: "mend what the service refuses"}
	case a.reason == "RESOURCE_ALREADY_EXISTS":
		return finding{kind: schema.ErrorConflict}
	case a.reason == "PERMISSIONS_ERROR", a.reason == "FORBIDDEN":
		return a.forbidden()
	}
	return finding{kind: schema.ErrorUnavailable, after: a.after}
}

// unauthenticated tells credentials that are refused from a token that could
// not be fetched, which may be a matter of the network.
func (a cloudAnswer) unauthenticated() finding {
	if a.has("per-RPC creds failed") && !a.has("invalid_grant", "invalid_rapt", "invalid_client", "unauthorized_client", "could not find default") {
		return finding{kind: schema.ErrorUnavailable}
	}
	return finding{kind: schema.ErrorPermission, do: "the credentials are missing, have expired or were revoked: " + login}
}

// quota says which one, where the service does.
func (a cloudAnswer) quota() finding {
	which := "a quota"
	if found := regexp.MustCompile(`(?i)quota(?: limit| metric)? '([^']+)'`).FindStringSubmatch(a.said); found != nil {
		which = "the quota " + found[1]
	}
	where := ""
	if found := regexp.MustCompile(`in (?:region|zone) ([a-z]+-[a-z0-9-]+)`).FindStringSubmatch(a.said); found != nil {
		where = " in " + found[1]
	}
	return finding{
		kind: schema.ErrorQuota,
		do:   which + where + " is used up: free some, or ask for more at https://console.cloud.google.com/iam-admin/quotas",
	}
}

// forbidden says which API, permission or project it takes.
func (a cloudAnswer) forbidden() finding {
	f := finding{kind: schema.ErrorPermission}
	api := cmp.Or(regexp.MustCompile(`[a-z]+\.googleapis\.com`).FindString(strings.ReplaceAll(a.said, "console.developers.googleapis.com", "")), "of the service")
	switch {
	case a.has("SERVICE_DISABLED", "accessNotConfigured", "has not been used in project"):
		f.do = fmt.Sprintf("enable the API %s (https://console.cloud.google.com/apis/library/%[1]s, or `gcloud services enable %[1]s`) and wait for some minutes", api)
	case a.has("BILLING_DISABLED", "billing"):
		f.do = "the project has no billing account: link one at https://console.cloud.google.com/billing/projects"
	default:
		missing := a.permission()
		if missing == "" {
			f.do = "have the project's owner grant these credentials the right, or use others"
			break
		}
		f.do = fmt.Sprintf("have the project's owner grant %s to the account of these credentials (%s has it), or use others", missing, roleOf(missing))
	}
	return f
}

// permission is the one that is missing, "" if the service does not say it.
func (a cloudAnswer) permission() string {
	return regexp.MustCompile(`\b(?:tpu|compute|iam|resourcemanager|serviceusage)\.[a-z][A-Za-z]*\.[a-z][A-Za-z]*\b`).FindString(a.said)
}

// roleOf is a predefined role with a permission.
func roleOf(permission string) string {
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

// legibly says in one line, in the service's words, what the libraries say in
// more.
func legibly(err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		text, _, _ = strings.Cut(strings.Replace(text, e.Error(), (&answerError{e}).Error(), 1), "\n")
	}
	if text = strings.TrimRight(strings.ReplaceAll(text, "\n", "; "), ". "); text == err.Error() {
		return err
	}
	return &briefError{text, err}
}

// briefError is an error in fewer words.
type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }

// interrupted puts the cause with which ctx has ended before what came of it:
// gRPC's errors do not know it.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return failf(schema.ErrorUnavailable, "%w: %w", context.Cause(ctx), err)
}
