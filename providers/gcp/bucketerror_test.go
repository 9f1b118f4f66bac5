package gcp

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

const (
	denied    = `{"error":{"code":403,"message":"ci@acme.iam.gserviceaccount.com does not have storage.objects.NAMED access to the Google Cloud Storage object. Permission 'storage.objects.NAMED' denied on resource (or it may not exist)."}}`
	deniedKey = `{"error":{"code":403,"message":"Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account has been authorized to use this key."}}`
	noBucket  = `{"error":{"code":404,"message":"The specified bucket does not exist."}}`
	noLogin   = `{"error":{"code":401,"message":"Invalid Credentials"}}`
)

// Each error says which object, what was found and what to do, and leaves the
// bucket as it was.
func TestErrorsSayWhatToDo(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   []string
	}{
		{"expired credentials", 401, noLogin, []string{"Invalid Credentials", "gcloud auth application-default login", "GOOGLE_APPLICATION_CREDENTIALS"}},
		{"a right that the service names", 403, denied, []string{"ci@acme.iam.gserviceaccount.com", "permission storage.objects.NAMED", "bucket acme"}},
		{"a right that it does not name", 403, "", []string{"permission storage.objects.", "bucket acme", "roles/storage.objectUser"}},
		{"a key that may not be used", 403, deniedKey, []string{"KMS", "roles/cloudkms.cryptoKeyEncrypterDecrypter"}},
		{"no bucket", 404, noBucket, []string{"no bucket acme", "gcloud storage buckets create gs://acme"}},
		{"a request that is wrong", 400, `{"error":{"code":400,"message":"Invalid argument."}}`, []string{"Invalid argument."}},
	}
	for _, test := range tests {
		for name, do := range operations() {
			t.Run(test.name+", "+name, func(t *testing.T) {
				w := newWire(t)
				b := w.open(t, quick())
				gen := put(t, b, "state.json", "kept", store.Absent)
				w.count()
				w.always(func(request) (fault, bool) { return answer(test.status, test.body), true })
				err := do(t.Context(), b)
				w.always(nil)
				if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
					t.Fatalf("got %v, want an error of its own", err)
				}
				for _, want := range append(test.want, "gs://acme/rl/math/") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not say %q", err, want)
					}
				}
				if counts := w.count(); total(counts) > 2 {
					t.Errorf("%d requests: it was tried again", total(counts))
				}
				list, err := b.List(t.Context(), "")
				if err != nil || len(list) != 1 || list[0].Generation != gen {
					t.Errorf("left: got %v, %v, want state.json of generation %d", list, err, gen)
				}
			})
		}
	}
}

func total(counts map[request]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// A right that an operation lacks is named even if the service does not.
func TestPermissions(t *testing.T) {
	w := newWire(t)
	b := w.open(t, quick())
	w.always(func(request) (fault, bool) { return answer(403, ""), true })
	for name, want := range map[string]string{
		"get": "storage.objects.get", "list": "storage.objects.list", "delete": "storage.objects.delete",
		"open": "storage.objects.get", "put": "storage.objects.create", "upload": "storage.objects.create",
	} {
		if err := operations()[name](t.Context(), b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// The emulator answers a missing object and a missing bucket alike.
func TestBucketThatIsNotThere(t *testing.T) {
	w := newWire(t)
	cfg := w.config()
	cfg.Bucket = "nope"
	_, err := openBucket(t.Context(), cfg, quick())
	for _, want := range []string{"gs://nope", "no bucket nope", "create it"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open: %v does not say %q", err, want)
		}
	}
	client, err := newClient(t.Context(), cfg, quick())
	if err != nil {
		t.Fatal(err)
	}
	b := w.open(t, quick())
	gone := &Bucket{bucket: client.Bucket("nope"), cfg: cfg, tempo: quick()}
	for name, do := range operations() {
		err := do(t.Context(), gone)
		if err == nil || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "no bucket nope") {
			t.Errorf("%s: got %v, want that there is no such bucket", name, err)
		}
	}
	if _, err := b.Get(t.Context(), "state.json"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get of nothing: got %v, want ErrNotFound", err)
	}
}

func TestUntrustedServiceIsNotTriedAgain(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	cfg := BucketConfig{Bucket: "acme", Endpoint: server.URL + "/storage/v1/", HTTPClient: &http.Client{}}
	if _, err := openBucket(t.Context(), cfg, quick()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want an untrusted certificate", err)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// account writes credentials of a service account whose tokens come from a server.
func account(t *testing.T, tokens string) {
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

func TestCredentials(t *testing.T) {
	const token = `{"access_token":"abc","token_type":"Bearer","expires_in":3600}`
	tests := []struct {
		name    string
		answers []fault
		want    string
	}{
		{"accepted", []fault{answer(200, token)}, ""},
		{"accepted after trouble", []fault{answer(503, ""), answer(503, ""), answer(200, token)}, ""},
		{"expired", []fault{answer(400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`)},
			"have expired or were revoked: run `gcloud auth application-default login`"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int64
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				a := test.answers[min(int(asked.Add(1)), len(test.answers))-1]
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(a.status)
				fmt.Fprint(w, a.body)
			}))
			defer tokens.Close()
			account(t, tokens.URL)
			w := newWire(t)
			cfg := w.config()
			cfg.HTTPClient = nil
			b, err := openBucket(t.Context(), cfg, quick())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			put(t, b, "state.json", "x", store.Absent)
			for _, r := range w.requests(false) {
				if got := r.Header.Get("Authorization"); got != "Bearer abc" {
					t.Errorf("%s %s: authorization %q", r.Method, r.URL, got)
				}
			}
		})
	}
}

func TestCredentialsThatAreNoCredentials(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{broken, filepath.Join(folder, "none.json")} {
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
		_, err := openBucket(t.Context(), BucketConfig{Bucket: "acme"}, quick())
		for _, want := range []string{"gs://acme", "no usable Google credentials", "run `gcloud auth application-default login`"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", filepath.Base(path), err, want)
			}
		}
	}
}

func TestEmulatorHostNeedsNoCredentials(t *testing.T) {
	w := newWire(t)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(w.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	b, err := openBucket(t.Context(), BucketConfig{Bucket: "acme"}, quick())
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, "state.json", "x", store.Absent)
	wantContent(t, b, "state.json", "x")
}
