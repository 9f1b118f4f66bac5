// Package profileserver serves the profiles of a Go program to fray profile, at a socket that only the
// program's own user can reach.
//
// Hosts of actors do so by themselves. It does not register anything at http.DefaultServeMux, as
// net/http/pprof does, so that a program's own servers stay as they are. Start with [Start].
package profileserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"
)

// Variable names the directory for the sockets of a task's processes. Tasks of fray have it.
const Variable = "FRAY_PROFILES"

// most is the longest time that a profile of the processor may take.
const most = 30 * time.Minute

// Start serves the profiles of this process until stop is called. Outside of tasks it does nothing.
func Start() (stop func(), err error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		return func() {}, nil
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+".sock")
	listener, err := listen(path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if answers(path) {
			return func() {}, nil // another part of this program serves them
		}
		_ = os.Remove(path) // of a process that had the same id
		listener, err = listen(path)
	}
	if err != nil {
		return nil, fmt.Errorf("serve profiles: %w", err)
	}
	server := &http.Server{Handler: handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with stop
	return func() {
		_ = server.Close()
		_ = os.Remove(path)
	}, nil
}

// handler answers as net/http/pprof does at the same paths.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
		if err != nil || seconds < 1 || time.Duration(seconds)*time.Second > most {
			http.Error(w, "seconds: want 1 to 1800", http.StatusBadRequest)
			return
		}
		data, err := processor(r.Context(), time.Duration(seconds)*time.Second)
		answer(w, data, err)
	})
	mux.HandleFunc("GET /debug/pprof/heap", func(w http.ResponseWriter, _ *http.Request) { lookup(w, "heap", 0) })
	mux.HandleFunc("GET /debug/pprof/goroutine", func(w http.ResponseWriter, r *http.Request) {
		debug, _ := strconv.Atoi(r.URL.Query().Get("debug"))
		lookup(w, "goroutine", debug)
	})
	return mux
}

// processor is a profile of the processor, of a time that ends with ctx.
func processor(ctx context.Context, length time.Duration) ([]byte, error) {
	var out bytes.Buffer
	if err := pprof.StartCPUProfile(&out); err != nil {
		return nil, errors.New("the processor is being profiled already; try again when that has ended")
	}
	defer pprof.StopCPUProfile()
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
	}
	pprof.StopCPUProfile()
	return out.Bytes(), nil
}

func lookup(w http.ResponseWriter, name string, debug int) {
	var out bytes.Buffer
	err := pprof.Lookup(name).WriteTo(&out, debug)
	answer(w, out.Bytes(), err)
}

func answer(w http.ResponseWriter, data []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data)
}
