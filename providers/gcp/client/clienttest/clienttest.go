package clienttest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/client"
)

// Fault is what the wire does to one request.
type Fault struct {
	Name string
	// status and body are the answer; 0: none, the connection breaks.
	Status int
	Body   string
	Happen bool // the service has carried the request out before
	// damage answers with the service's own reply, made worse.
	Damage func(w http.ResponseWriter, reply *httptest.ResponseRecorder)
	Stall  bool   // no more comes, and the connection stays
	Then   func() // runs before the answer
}

// Answer is a fault that answers a request in the place of the service.
func Answer(status int, body string) Fault {
	return Fault{Name: "an answer", Status: status, Body: body}
}

// Reply sends a recorded reply.
func Reply(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.WriteHeader(recorded.Code)
	_, _ = out.Write(recorded.Body.Bytes())
}

// Cut breaks the connection.
func Cut(out http.ResponseWriter) {
	conn, _, err := http.NewResponseController(out).Hijack()
	if err == nil {
		conn.Close()
	}
}

// Part sends the headers of all and the first half of the content.
func Part(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.WriteHeader(recorded.Code)
	_, _ = out.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
	_ = http.NewResponseController(out).Flush()
}

// Half is part of the content and the end of the connection.
func Half(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	Part(out, recorded)
	Cut(out)
}

// Short sends the first half of the content as if it were all.
func Short(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.Header().Set("Content-Length", strconv.Itoa(recorded.Body.Len()/2))
	out.WriteHeader(recorded.Code)
	_, _ = out.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
}

// Flipped sends all with one bit changed.
func Flipped(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	changed := bytes.Clone(recorded.Body.Bytes())
	changed[len(changed)/2] ^= 1
	recorded.Body = bytes.NewBuffer(changed)
	Reply(out, recorded)
}

// Unsummed sends all without its checksum.
func Unsummed(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	recorded.Header().Del("X-Goog-Hash")
	Reply(out, recorded)
}

// Dripping sends the content byte by byte.
func Dripping(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.WriteHeader(recorded.Code)
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for _, b := range recorded.Body.Bytes() {
		<-tick.C
		_, _ = out.Write([]byte{b})
		_ = http.NewResponseController(out).Flush()
	}
}

// Busy is the body of an answer of a service that is overloaded.
const Busy = `{"error":{"code":503,"message":"We encountered an internal error. Please try again."}}`

// PassingFaults are those after which another try succeeds.
func PassingFaults() []Fault {
	return []Fault{
		{Name: "503 before", Status: 503, Body: Busy},
		{Name: "503 after it happened", Status: 503, Body: Busy, Happen: true},
		{Name: "500", Status: 500},
		{Name: "408", Status: 408},
		{Name: "429", Status: 429},
		{Name: "connection lost before"},
		{Name: "reply lost", Happen: true},
		{Name: "stalled before", Stall: true},
		{Name: "stalled after it happened", Stall: true, Happen: true},
	}
}

// Chunk is the least that the service takes.
const Chunk = 256 << 10

// Quick is a tempo for what does not test the tempo: no request of a busy machine
// is taken for one that hangs.
func Quick() client.Pace {
	return client.Pace{Stall: time.Minute, Backoff: time.Millisecond, Patience: 20 * time.Second, Chunk: Chunk}
}

// Account writes credentials of a service account whose tokens come from a server.
func Account(t *testing.T, tokens string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "acme", "client_email": "ci@acme.iam.gserviceaccount.com",
		"private_key_id": "1", "token_uri": tokens,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
}

// NoLogin is the body of an answer to credentials that the service does not take.
const NoLogin = `{"error":{"code":401,"message":"Invalid Credentials"}}`
