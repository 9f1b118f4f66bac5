package emulator

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/providers/gcp/emulator/tpu"
)

// RPC is a connection to the emulator's Cloud TPU API within this process, see
// [tpu.Local].
func (e *Emulator) RPC() grpc.ClientConnInterface { return tpu.Local(e.cloud) }

// REST is a transport to the emulator's other services within this process, whatever
// host a request names.
func (e *Emulator) REST() http.RoundTripper { return localTransport{e.rest} }

// localTransport calls a handler in place of a connection.
type localTransport struct{ handler http.Handler }

// RoundTrip has the handler answer, and returns when it has.
func (t localTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	request := r.Clone(r.Context())
	request.RequestURI = r.URL.RequestURI()
	if request.Body == nil {
		request.Body = http.NoBody
	}
	defer request.Body.Close()
	answer := &localAnswer{header: http.Header{}}
	t.handler.ServeHTTP(answer, request)
	code := answer.code
	if code == 0 {
		code = http.StatusOK
	}
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
	}, nil
}

// localAnswer keeps what a handler writes.
type localAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *localAnswer) Header() http.Header { return a.header }

func (a *localAnswer) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
}

func (a *localAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
