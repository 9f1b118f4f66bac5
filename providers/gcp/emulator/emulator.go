package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/compute"
	"github.com/fray-ml/fray/providers/gcp/emulator/tpu"
)

// Config is what an emulator is made of.
type Config struct {
	// Cloud is the model; New makes one of the rest of it.
	Cloud cloud.Config
	// Storage answers below /storage/, /upload/ and /download/; nil: nothing does.
	Storage http.Handler
}

// Emulator serves one cloud.
type Emulator struct {
	cloud   *cloud.Cloud
	rpc     *grpc.Server
	rest    *http.ServeMux
	handler http.Handler

	closers []io.Closer

	mu      sync.Mutex
	servers []*http.Server
	url     string
}

// New makes an emulator. It serves nothing yet, but its scenario begins now.
func New(config Config) *Emulator {
	e := &Emulator{cloud: cloud.New(config.Cloud), rest: http.NewServeMux()}
	e.rpc = tpu.New(e.cloud)
	e.rest.Handle("/emulator/", e.control())
	api := compute.New(e.cloud)
	for _, prefix := range []string{"/compute/", "/v1/projects/", "/v3/projects/"} {
		e.rest.Handle(prefix, api)
	}
	if config.Storage != nil {
		for _, prefix := range []string{"/storage/", "/upload/storage/", "/download/storage/", "/batch/storage/"} {
			e.rest.Handle(prefix, config.Storage)
		}
	}
	e.handler = http.HandlerFunc(e.serveHTTP)
	return e
}

// Cloud is the model behind the emulator.
func (e *Emulator) Cloud() *cloud.Cloud { return e.cloud }

// Mount serves another REST API at a pattern of http.ServeMux. It must not be
// called once anything is served.
func (e *Emulator) Mount(pattern string, h http.Handler) { e.rest.Handle(pattern, h) }

// Handler answers everything: gRPC by its content type, else REST. gRPC needs a
// server that speaks HTTP/2 without TLS.
func (e *Emulator) Handler() http.Handler { return e.handler }

func (e *Emulator) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		e.rpc.ServeHTTP(w, r)
		return
	}
	e.rest.ServeHTTP(w, r)
}

// Serve serves on a listener until Close. URL is known from then on.
func (e *Emulator) Serve(l net.Listener) error {
	server := e.server(l)
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the emulator: %w", err)
	}
	return nil
}

// Start listens on an address, "127.0.0.1:0" for any free port, and serves there
// until Close.
func (e *Emulator) Start(ctx context.Context, address string) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	e.start(l)
	return nil
}

func (e *Emulator) start(l net.Listener) {
	server := e.server(l)
	go func() { _ = server.Serve(l) }() // ends with Close; before that, its clients see what ended it
}

func (e *Emulator) server(l net.Listener) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: e.handler, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers = append(e.servers, server)
	e.url = "http://" + l.Addr().String()
	return server
}

// URL is where the emulator is served, the value of FRAY_GCP_ENDPOINT; "" before.
func (e *Emulator) URL() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.url
}

// Close ends all connections, and the machines of an emulator made by [Open].
func (e *Emulator) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, s := range e.servers {
		errs = append(errs, s.Close())
	}
	e.servers = nil
	e.rpc.Stop()
	for _, c := range e.closers {
		errs = append(errs, c.Close())
	}
	e.closers = nil
	return errors.Join(errs...)
}
