package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/sleep"
)

// slowly reads one byte each time the pace has passed, as often as said, and
// then hangs until the request is given up.
func slowly(r *http.Request, body io.Reader, times int, pace time.Duration) error {
	for range times {
		if !sleep.For(r.Context(), pace) {
			return context.Cause(r.Context())
		}
		if _, err := body.Read(make([]byte, 1)); err != nil {
			return err
		}
	}
	<-r.Context().Done()
	return r.Context().Err()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestStall(t *testing.T) {
	const limit = 10 * time.Second
	const pace = limit - time.Second
	tests := []struct {
		name string
		base func(*http.Request) (*http.Response, error)
		want time.Duration
	}{
		{"no answer", func(r *http.Request) (*http.Response, error) {
			return nil, slowly(r, r.Body, 0, pace)
		}, limit},
		{"a body that is taken slowly", func(r *http.Request) (*http.Response, error) {
			return nil, slowly(r, r.Body, 5, pace)
		}, 5*pace + limit},
		{"an answer that comes slowly", func(r *http.Request) (*http.Response, error) {
			return &http.Response{Body: &drip{r: r, left: 5, pace: pace}}, nil
		}, 5*pace + limit},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &stallTransport{base: roundTripper(test.base), limit: limit}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://service", strings.NewReader("a long body"))
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				response, err := transport.RoundTrip(r)
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
				if !errors.Is(err, errStalled) || time.Since(began) != test.want {
					t.Errorf("got %v after %v, want a stall after %v", err, time.Since(began), test.want)
				}
			})
		})
	}
}

// drip is a body that comes byte by byte and then hangs.
type drip struct {
	r    *http.Request
	left int
	pace time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left == 0 {
		<-d.r.Context().Done()
		return 0, d.r.Context().Err()
	}
	d.left--
	p[0] = 'x'
	if !sleep.For(d.r.Context(), d.pace) {
		return 1, context.Cause(d.r.Context())
	}
	return 1, nil
}

func (d *drip) Close() error { return nil }

// A reader may rest for longer than the service may.
func TestResponseWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Second
		transport := &stallTransport{limit: limit, base: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{Body: &drip{r: r, left: 3, pace: limit / 2}}, nil
		})}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://service", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		for range 3 {
			if !sleep.For(t.Context(), 3*limit) {
				t.Fatal(context.Cause(t.Context()))
			}
			if n, err := response.Body.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Fatalf("got %d bytes, %v, want 1", n, err)
			}
		}
	})
}
