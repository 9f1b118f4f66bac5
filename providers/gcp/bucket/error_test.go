package bucket

import (
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

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
)

const (
	denied    = `{"error":{"code":403,"message":"ci@acme.iam.gserviceaccount.com does not have storage.objects.NAMED access to the Google Cloud Storage object. Permission 'storage.objects.NAMED' denied on resource (or it may not exist)."}}`
	deniedKey = `{"error":{"code":403,"message":"Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account has been authorized to use this key."}}`
	noBucket  = `{"error":{"code":404,"message":"The specified bucket does not exist."}}`
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
		{"expired credentials", 401, clienttest.NoLogin, []string{"Invalid Credentials", "gcloud auth application-default login", "GOOGLE_APPLICATION_CREDENTIALS"}},
		{"a right that the service names", 403, denied, []string{"ci@acme.iam.gserviceaccount.com", "permission storage.objects.NAMED", "bucket acme"}},
		{"a right that it does not name", 403, "", []string{"permission storage.objects.", "bucket acme", "roles/storage.objectUser"}},
		{"a key that may not be used", 403, deniedKey, []string{"KMS", "roles/cloudkms.cryptoKeyEncrypterDecrypter"}},
		{"no bucket", 404, noBucket, []string{"no bucket acme", "gcloud storage buckets create gs://acme"}},
		{"a request that is wrong", 400, `{"error":{"code":400,"message":"Invalid argument."}}`, []string{"Invalid argument."}},
	}
	for _, test := range tests {
		for name, do := range operations() {
			t.Run(test.name+", "+name, func(t *testing.T) {
				w := buckettest.New(t)
				b := opened(t, w, clienttest.Quick())
				gen := put(t, b, "state.json", "kept", store.Absent)
				w.Count()
				w.Always(func(buckettest.Request) (clienttest.Fault, bool) {
					return clienttest.Answer(test.status, test.body), true
				})
				err := do(t.Context(), b)
				w.Always(nil)
				if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
					t.Fatalf("got %v, want an error of its own", err)
				}
				for _, want := range append(test.want, "gs://acme/rl/math/") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not say %q", err, want)
					}
				}
				if counts := w.Count(); total(counts) > 2 {
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

func total(counts map[buckettest.Request]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// A right that an operation lacks is named even if the service does not.
func TestPermissions(t *testing.T) {
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	w.Always(func(buckettest.Request) (clienttest.Fault, bool) { return clienttest.Answer(403, ""), true })
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
	w := buckettest.New(t)
	cfg := configOf(w)
	cfg.Bucket = "nope"
	_, err := open(t.Context(), cfg, clienttest.Quick())
	for _, want := range []string{"gs://nope", "no bucket nope", "create it"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open: %v does not say %q", err, want)
		}
	}
	service, err := newService(t.Context(), cfg, clienttest.Quick(), cfg.HTTPClient.Transport)
	if err != nil {
		t.Fatal(err)
	}
	b := opened(t, w, clienttest.Quick())
	gone := &Bucket{service: service, cfg: cfg, tempo: clienttest.Quick()}
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
	cfg := Config{Bucket: "acme", Endpoint: server.URL + "/storage/v1/", HTTPClient: &http.Client{}}
	if _, err := open(t.Context(), cfg, clienttest.Quick()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want an untrusted certificate", err)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestCredentials(t *testing.T) {
	const token = `{"access_token":"abc","token_type":"Bearer","expires_in":3600}`
	tests := []struct {
		name    string
		answers []clienttest.Fault
		want    string
	}{
		{"accepted", []clienttest.Fault{clienttest.Answer(200, token)}, ""},
		{"accepted after a problem", []clienttest.Fault{clienttest.Answer(503, ""), clienttest.Answer(503, ""), clienttest.Answer(200, token)}, ""},
		{"expired", []clienttest.Fault{clienttest.Answer(400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`)},
			"have expired or were revoked: run `gcloud auth application-default login`"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int64
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				a := test.answers[min(int(asked.Add(1)), len(test.answers))-1]
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(a.Status)
				fmt.Fprint(w, a.Body)
			}))
			defer tokens.Close()
			clienttest.Account(t, tokens.URL)
			w := buckettest.New(t)
			cfg := configOf(w)
			cfg.HTTPClient = nil
			b, err := open(t.Context(), cfg, clienttest.Quick())
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
			for _, r := range w.Requests(false) {
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
		_, err := open(t.Context(), Config{Bucket: "acme"}, clienttest.Quick())
		for _, want := range []string{"gs://acme", "no usable Google credentials", "run `gcloud auth application-default login`"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", filepath.Base(path), err, want)
			}
		}
	}
}

func TestEmulatorHostNeedsNoCredentials(t *testing.T) {
	w := buckettest.New(t)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(w.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	b, err := open(t.Context(), Config{Bucket: "acme"}, clienttest.Quick())
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, "state.json", "x", store.Absent)
	wantContent(t, b, "state.json", "x")
}
