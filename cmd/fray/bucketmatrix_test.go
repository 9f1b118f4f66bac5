package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// bucketFault is a closed set of what may happen to one request.
type bucketFault string

// The faults. Those "after" are of a request that the service has carried out.
const (
	resetBefore bucketFault = "reset before"
	resetAfter  bucketFault = "reset after"
	tooLate     bucketFault = "late"
	duplicated  bucketFault = "duplicated" // the second reply is what arrives
	conflicting bucketFault = "412"
	throttled   bucketFault = "429"
	unavailable bucketFault = "503"
	truncated   bucketFault = "truncated"
	hanging     bucketFault = "hanging" // for lateBy twenty times, then broken
	unknownUser bucketFault = "401"
	forbidden   bucketFault = "403"
)

func bucketFaults() []bucketFault {
	return []bucketFault{
		resetBefore, resetAfter, tooLate, duplicated, conflicting, throttled, unavailable, truncated, hanging, unknownUser, forbidden,
	}
}

// lateBy is how late a late reply is.
const lateBy = 1500 * time.Millisecond

// bucketRequest names a request by what it does to what, so that runs compare:
// the nth of its kind.
type bucketRequest struct {
	kind string // "PUT state.json"
	nth  int    // from 1
}

func (r bucketRequest) String() string { return fmt.Sprintf("%s #%d", r.kind, r.nth) }

// faultyBucket comes between processes and a service: it counts requests and
// disturbs one of them.
type faultyBucket struct {
	service http.Handler
	prefix  string // of the stack whose requests count

	mu     sync.Mutex
	counts map[string]int
	seen   []bucketRequest
	at     bucketRequest
	fault  bucketFault // "": none, or it has happened
}

// record forgets what was seen; with a fault, that happens to one request.
func (b *faultyBucket) record(at bucketRequest, fault bucketFault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts, b.seen, b.at, b.fault = map[string]int{}, nil, at, fault
}

// requests are those since record, and whether the fault has happened.
func (b *faultyBucket) requests() ([]bucketRequest, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen), b.fault == ""
}

func (b *faultyBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := b.take(r)
	if f == "" {
		b.service.ServeHTTP(w, r)
		return
	}
	b.disturb(w, r, f)
}

// take counts a request and returns what is to happen to it.
func (b *faultyBucket) take(r *http.Request) bucketFault {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := requestKind(r, b.prefix)
	if kind == "" || b.counts == nil {
		return ""
	}
	b.counts[kind]++
	request := bucketRequest{kind, b.counts[kind]}
	b.seen = append(b.seen, request)
	if request != b.at {
		return ""
	}
	f := b.fault
	b.fault = ""
	return f
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// requestKind is the method and the object, its numbers and hashes left out; ""
// for a request of another stack.
func requestKind(r *http.Request, prefix string) string {
	path := r.URL.Path
	name := r.URL.Query().Get("name") + r.URL.Query().Get("prefix")
	if name == "" {
		if _, after, is := strings.Cut(path, "/o/"); is {
			name = after
		} else if after, is := strings.CutPrefix(path, "/"+emulatedBucket+"/"); is {
			name = after
		}
	}
	name, mine := strings.CutPrefix(name, prefix)
	if !mine {
		return ""
	}
	method := r.Method
	if r.URL.Query().Has("prefix") {
		method = "LIST"
	}
	name = strings.Trim(name, "/")
	if folder, rest, nested := strings.Cut(name, "/"); nested {
		name = folder + "/" + digits.ReplaceAllString(rest, "N")
	}
	return method + " " + name
}

// disturb does what a fault is to a request.
func (b *faultyBucket) disturb(w http.ResponseWriter, r *http.Request, f bucketFault) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	serve := func() *httptest.ResponseRecorder {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		out := httptest.NewRecorder()
		b.service.ServeHTTP(out, again)
		return out
	}
	status := func(code int, reason string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":"made up: %s","errors":[{"reason":%q,"message":"made up"}]}}`, code, reason, reason)
	}
	switch f {
	case resetBefore:
		hangUp(w, nil)
	case resetAfter:
		serve()
		hangUp(w, nil)
	case tooLate:
		delay(r, lateBy)
		reply(w, serve())
	case duplicated:
		serve()
		reply(w, serve())
	case conflicting:
		status(http.StatusPreconditionFailed, "conditionNotMet")
	case throttled:
		status(http.StatusTooManyRequests, "rateLimitExceeded")
	case unavailable:
		status(http.StatusServiceUnavailable, "backendError")
	case unknownUser:
		status(http.StatusUnauthorized, "authError")
	case forbidden:
		status(http.StatusForbidden, "forbidden")
	case truncated:
		out := serve()
		content := out.Body.Bytes()
		hangUp(w, fmt.Appendf(nil, "HTTP/1.1 %d OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
			out.Code, out.Header().Get("Content-Type"), max(1, len(content)), content[:len(content)/2]))
	case hanging:
		delay(r, 20*lateBy)
		hangUp(w, nil)
	}
}

// pause waits, or until the client has gone.
func delay(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

func reply(w http.ResponseWriter, out *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), out.Header())
	w.WriteHeader(out.Code)
	_, _ = w.Write(out.Body.Bytes())
}

// hangUp writes something and breaks the connection.
func hangUp(w http.ResponseWriter, first []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = conn.Write(first)
	_ = conn.Close()
}
