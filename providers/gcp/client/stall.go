package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

var errStalled = Transient("the service stopped answering")

// stallTransport ends a request that moves no byte in either direction for the
// time of limit. One that is slow but moves may take as long as it needs.
type stallTransport struct {
	base  http.RoundTripper
	limit time.Duration
}

// New returns a client whose requests end once they move no byte for as long as limit.
func New(base http.RoundTripper, limit time.Duration) *http.Client {
	return &http.Client{Transport: &stallTransport{base: base, limit: limit}}
}

// RoundTrip is the base's, with an errStalled in place of a hang.
func (t *stallTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	w := &watchdog{ctx: ctx, cancel: cancel, limit: t.limit}
	w.timer = time.AfterFunc(t.limit, func() { cancel(errStalled) })
	watched, sent := r.Clone(ctx), &sentBody{ReadCloser: r.Body, watchdog: w}
	if r.Body != nil && r.Body != http.NoBody {
		watched.Body = sent
	}
	response, err := t.base.RoundTrip(watched)
	sent.settle()
	if err != nil {
		w.end()
		return nil, w.explain(err)
	}
	w.rest()
	response.Body = &receivedBody{ReadCloser: response.Body, watchdog: w}
	return response, nil
}

// CloseIdleConnections is the base's.
func (t *stallTransport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// watchdog cancels a request unless it makes progress in time.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  time.Duration

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

func (w *watchdog) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.timer.Reset(w.limit)
	}
}

// rest stops the clock until the next alive: it is not the service that is
// waited for.
func (w *watchdog) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

func (w *watchdog) end() {
	w.mu.Lock()
	w.ended = true
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil) // keeps the first cause
}

// explain puts the stall in the place of the cancellation that it caused.
func (w *watchdog) explain(err error) error {
	if errors.Is(context.Cause(w.ctx), errStalled) {
		return errStalled
	}
	return err
}

// sentBody is a request's: every byte of it that goes out is a sign of life.
type sentBody struct {
	io.ReadCloser
	watchdog *watchdog

	reading sync.Mutex
	settled bool
}

// settle waits for a Read that is under way and ends the body. The transport
// reads it on its own, also after an early reply, and the library fills the
// buffer behind it anew once it has the reply to a chunk.
func (b *sentBody) settle() {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.settled = true
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.settled {
		return 0, io.EOF // the transport drops the connection if bytes are missing
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watchdog.alive()
	}
	return n, err
}

// receivedBody is a response's: only while it is read is it waited for. Its
// end is the end of the request.
type receivedBody struct {
	io.ReadCloser
	watchdog *watchdog
}

func (b *receivedBody) Read(p []byte) (int, error) {
	b.watchdog.alive()
	n, err := b.ReadCloser.Read(p)
	b.watchdog.rest()
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.watchdog.explain(err)
	}
	return n, err
}

func (b *receivedBody) Close() error {
	err := b.ReadCloser.Close()
	b.watchdog.end()
	return err
}
