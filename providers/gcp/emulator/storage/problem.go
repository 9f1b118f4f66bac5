package storage

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
)

// problem is an answer that is an error, with the service's text.
type problem struct {
	status  int
	reason  string // of the JSON API
	code    string // of the XML API
	message string
}

func (p *problem) Error() string { return p.message }

func noBucket() *problem {
	return &problem{http.StatusNotFound, "notFound", "NoSuchBucket", "The specified bucket does not exist."}
}

func noObject(bucket, name string) *problem {
	return &problem{http.StatusNotFound, "notFound", "NoSuchKey", fmt.Sprintf("No such object: %s/%s", bucket, name)}
}

func unmet() *problem {
	return &problem{http.StatusPreconditionFailed, "conditionNotMet", "PreconditionFailed",
		"At least one of the pre-conditions you specified did not hold."}
}

func denied(permission string) *problem {
	return &problem{http.StatusForbidden, "forbidden", "AccessDenied", fmt.Sprintf(
		"emulated@example.com does not have %s access to the Google Cloud Storage object. "+
			"Permission '%[1]s' denied on resource (or it may not exist).", permission)}
}

func tooSoon(bucket, name string) *problem {
	return &problem{http.StatusTooManyRequests, "rateLimitExceeded", "SlowDown", fmt.Sprintf(
		"The object %s/%s exceeded the rate limit for object mutation operations (create, update, and delete). "+
			"Please reduce your request rate. See https://cloud.google.com/storage/docs/gcs429.", bucket, name)}
}

func invalid(format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, "invalid", "InvalidArgument", fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) *problem {
	return &problem{http.StatusConflict, "conflict", "Conflict", fmt.Sprintf(format, args...)}
}

func busy() *problem {
	return &problem{http.StatusServiceUnavailable, "backendError", "ServiceUnavailable", "Service Unavailable"}
}

func broken(err error) *problem {
	return &problem{http.StatusInternalServerError, "backendError", "InternalError", "the emulator could not keep it: " + err.Error()}
}

func unknown(r *http.Request) *problem {
	return &problem{http.StatusNotImplemented, "notImplemented", "NotImplemented",
		fmt.Sprintf("the emulator of Cloud Storage does not know %s %s", r.Method, r.URL.Path)}
}

// dialect is the form in which a request expects errors.
type dialect int

const (
	dialectJSON  dialect = iota
	dialectMedia         // an object's bytes by the JSON API: plain text
	dialectXML
)

func (p *problem) write(w http.ResponseWriter, as dialect) {
	kind, body := "application/json; charset=UTF-8", []byte(nil)
	switch as {
	case dialectJSON:
		entry := map[string]string{"message": p.message, "domain": "global", "reason": p.reason}
		body, _ = json.Marshal(map[string]any{"error": map[string]any{ // strings and a number always encode
			"code": p.status, "message": p.message, "errors": []any{entry},
		}})
	case dialectMedia:
		kind, body = "text/html; charset=UTF-8", []byte(p.message)
	case dialectXML:
		type element struct {
			XMLName xml.Name `xml:"Error"`
			Code    string
			Message string
			Details string
		}
		encoded, _ := xml.Marshal(element{Code: p.code, Message: p.message, Details: p.message})
		kind, body = "application/xml; charset=UTF-8", append([]byte("<?xml version='1.0' encoding='UTF-8'?>"), encoded...)
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(p.status)
	if p.status != http.StatusNotModified {
		_, _ = w.Write(body)
	}
}
