package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// emulator is Cloud Storage for processes of fray: fake-gcs-server on a real
// connection, behind something that may come between.
type emulator struct {
	*httptest.Server
	service *fakestorage.Server
	// between sees every request, and answers it itself or returns false.
	between atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

const emulatedBucket = "acme"

func newEmulator(t *testing.T) *emulator { return emulatorWith(t, true) }

// emulatorWith is newEmulator with or without object versioning: with it, the
// emulator remembers every report of every host, and gets slow.
func emulatorWith(t *testing.T, versioning bool) *emulator {
	t.Helper()
	e, err := startEmulator(versioning)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.end)
	return e
}

func startEmulator(versioning bool) (*emulator, error) {
	service, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		return nil, err
	}
	service.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: emulatedBucket, VersioningEnabled: versioning})
	e := &emulator{service: service}
	e.Server = httptest.NewUnstartedServer(e)
	e.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	e.Start()
	return e, nil
}

type connectionKey struct{}

// connectionOf is the connection that a request came by.
func connectionOf(r *http.Request) net.Conn {
	conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
	return conn
}

func (e *emulator) end() {
	e.CloseClientConnections()
	e.Close()
	e.service.Stop()
}

func (e *emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if between := e.between.Load(); between != nil && (*between)(w, r) {
		return
	}
	e.service.HTTPHandler().ServeHTTP(w, r)
}

// environ is what points a process at the emulator, which has no limit of one
// write a second.
func (e *emulator) environ() []string {
	return []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(e.URL, "http://")}
}

// isPut reports whether a request writes an object of a name that ends so.
func isPut(r *http.Request, name string) bool {
	return r.URL.Query().Get("uploadType") == "multipart" && strings.HasSuffix(r.URL.Query().Get("name"), name)
}

// lose serves a request and breaks the connection in place of the reply.
func (e *emulator) lose(w http.ResponseWriter, r *http.Request) {
	e.service.HTTPHandler().ServeHTTP(httptest.NewRecorder(), r)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// inBucket makes a configuration keep its state in the emulated bucket.
func inBucket(prefix, config string) string {
	return fmt.Sprintf("fray {\n  state \"gcs\" {\n    bucket = %q\n    prefix = %q\n  }\n}\n%s", emulatedBucket, prefix, config)
}
