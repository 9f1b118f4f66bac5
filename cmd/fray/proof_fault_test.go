package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// TestSingleFault injects one fault into the bucket while an apply works,
// each of those after which Terraform's state stays locked or unsaved. The
// apply succeeds, and the next one is not kept out.
func TestSingleFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		hits  func(*http.Request) bool
		fault func(*emulator, http.ResponseWriter, *http.Request)
	}{
		{"the reply to taking the lock is lost", func(r *http.Request) bool { return putsLease(r, false) }, (*emulator).lose},
		{"the reply to releasing it is lost", func(r *http.Request) bool { return putsLease(r, true) }, (*emulator).lose},
		{"one 503 on the state write before it happens", func(r *http.Request) bool { return isPut(r, store.StateKey) }, (*emulator).refuse},
		{"one 503 on the state write after it has happened", func(r *http.Request) bool { return isPut(r, store.StateKey) }, (*emulator).serveAndRefuse},
		{"one 503 on the last state write after it has happened", putsRunning, (*emulator).serveAndRefuse},
	} {
		t.Run(c.name, func(t *testing.T) {
			bucket := newEmulator(t)
			s := newProofStack(t, bucket)
			s.write(t, sleeper)
			var hit atomic.Bool
			between := func(w http.ResponseWriter, r *http.Request) bool {
				faulty := c.hits(r) && hit.CompareAndSwap(false, true)
				if faulty {
					c.fault(bucket, w, r)
				}
				return faulty
			}
			bucket.between.Store(&between)
			s.must(t, "apply", "--auto-approve")
			bucket.between.Store(nil)
			if !hit.Load() {
				t.Fatal("the fault did not happen")
			}
			if got := s.must(t, "state", "lease").stdout; !strings.Contains(got, "free: released by its last holder") {
				t.Errorf("after the apply the lease is not free:\n%s", got)
			}
			documents := s.documents(t)
			for i, d := range documents {
				if d.Serial != uint64(i+1) || d.Epoch != 1 {
					t.Errorf("version %d of the state has serial %d and epoch %d, want %d and 1", i, d.Serial, d.Epoch, i+1)
				}
			}
			one := schema.Address{Kind: schema.KindJob, Name: "one"}
			if j := documents[len(documents)-1].Jobs[one]; j == nil || j.Status != schema.JobRunning || j.Attempt != 1 {
				t.Errorf("%s in the state is %+v, want one running in attempt 1", one, j)
			}
			if got := s.must(t, "apply", "--auto-approve"); strings.Contains(got.stderr, "creating") {
				t.Errorf("the next apply had something to do: %v", got)
			}
			s.must(t, "plan", "--detailed-exitcode")
		})
	}
}

// refuse answers 503 and does nothing.
func (e *emulator) refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "try again", http.StatusServiceUnavailable)
}

// serveAndRefuse does what is asked and answers 503 all the same.
func (e *emulator) serveAndRefuse(w http.ResponseWriter, r *http.Request) {
	e.service.HTTPHandler().ServeHTTP(httptest.NewRecorder(), r)
	e.refuse(w, r)
}

// putsLease reports whether a request writes the lease as free, or as taken.
func putsLease(r *http.Request, free bool) bool {
	if !isPut(r, store.LeaseKey) {
		return false
	}
	var l store.Lease
	return json.Unmarshal(uploaded(r), &l) == nil && l.Released == free
}

// putsRunning reports whether a request writes a state with a running job.
func putsRunning(r *http.Request) bool {
	return isPut(r, store.StateKey) && bytes.Contains(uploaded(r), []byte(`"running"`))
}

// uploaded is what a multipart upload carries, byte for byte: the content of its
// second part; the request can still be served.
func uploaded(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	_, boundary, _ := strings.Cut(r.Header.Get("Content-Type"), "boundary=")
	parts := bytes.Split(body, []byte("--"+strings.Trim(boundary, `"`)))
	if len(parts) < 3 {
		return nil
	}
	_, content, _ := bytes.Cut(parts[2], []byte("\r\n\r\n"))
	return bytes.TrimSuffix(content, []byte("\r\n"))
}
