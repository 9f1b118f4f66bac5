package gcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/keyring"
)

var _ keyring.KMS = (*KMS)(nil)

const keyName = "projects/acme/locations/global/keyRings/fray/cryptoKeys/state"

func (w *kmsWire) open(t *testing.T, pace tempo) *KMS {
	t.Helper()
	k, err := openKMS(t.Context(), w.config(), pace)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (w *kmsWire) config() KMSConfig {
	return KMSConfig{Key: "gcp-kms://" + keyName, Endpoint: w.URL + "/", HTTPClient: w.Client()}
}

// kmsMethods are both, on what the service has encrypted before.
func kmsMethods(wrapped []byte) map[kmsOperation]func(context.Context, *KMS) ([]byte, error) {
	return map[kmsOperation]func(context.Context, *KMS) ([]byte, error){
		kmsEncrypt: func(ctx context.Context, k *KMS) ([]byte, error) { return k.Encrypt(ctx, []byte("secret")) },
		kmsDecrypt: func(ctx context.Context, k *KMS) ([]byte, error) { return k.Decrypt(ctx, wrapped) },
	}
}

func wrapped(t *testing.T, k *KMS) []byte {
	t.Helper()
	ciphertext, err := k.Encrypt(t.Context(), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	return ciphertext
}

func TestKMSOpensWhatItEncrypted(t *testing.T) {
	w := newKMSWire(t)
	k := w.open(t, quick())
	for _, plain := range []string{"", "secret", strings.Repeat("\x00\xff", 1000)} {
		ciphertext, err := k.Encrypt(t.Context(), []byte(plain))
		if err != nil || len(plain) > 0 && bytes.Contains(ciphertext, []byte(plain)) {
			t.Fatalf("%.10q: got %.20q, %v", plain, ciphertext, err)
		}
		if got, err := k.Decrypt(t.Context(), ciphertext); err != nil || string(got) != plain {
			t.Errorf("%.10q: got %.10q, %v", plain, got, err)
		}
	}
}

// The whole way: a stack's key, wrapped by the service.
func TestKeyringOfKMS(t *testing.T) {
	w := newKMSWire(t)
	openers := keyring.Openers{keyring.SchemeGoogle: func(ctx context.Context, key string) (keyring.KMS, error) {
		cfg := w.config()
		cfg.Key = key
		return openKMS(ctx, cfg, quick())
	}}
	made, secret, err := keyring.New(t.Context(), keyring.Policy{KMSKey: keyName}, openers)
	if err != nil {
		t.Fatal(err)
	}
	data, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	k, err := keyring.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.Open(t.Context(), keyring.Unlock{KMS: openers}); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %x, %v, want %x", got, err, secret)
	}
	w.always(answer(403, `{"error":{"code":403,"message":"Permission denied."}}`))
	_, err = k.Open(t.Context(), keyring.Unlock{KMS: openers})
	if !errors.Is(err, keyring.ErrLocked) || !strings.Contains(err.Error(), "roles/cloudkms.cryptoKeyEncrypterDecrypter") {
		t.Errorf("got %v, want ErrLocked and what to do", err)
	}
}

// Each error says which key, what was found and what to do, and comes at once.
func TestKMSErrorsSayWhatToDo(t *testing.T) {
	said := func(code int, message string) fault {
		return answer(code, fmt.Sprintf(`{"error":{"code":%d,"message":%q,"details":[{"@type":"x"}]}}`, code, message))
	}
	tests := []struct {
		name  string
		only  kmsOperation // "": both
		fault fault
		want  []string
	}{
		{"expired credentials", "", answer(401, noLogin), []string{"Invalid Credentials", "gcloud auth application-default login"}},
		{"a right that is missing", kmsDecrypt,
			said(403, "Permission 'cloudkms.cryptoKeyVersions.useToDecrypt' denied on resource 'x' (or it may not exist)."),
			[]string{"the service answered 403: Permission '", "the permission cloudkms.cryptoKeyVersions.useToDecrypt on the key is missing",
				"roles/cloudkms.cryptoKeyEncrypterDecrypter"}},
		{"a right that is not named", kmsEncrypt, answer(403, ""),
			[]string{"the service answered 403 Forbidden", "the permission cloudkms.cryptoKeyVersions.useToEncrypt on the key is missing"}},
		{"a service that is off", "",
			said(403, "Cloud Key Management Service (KMS) API has not been used in project 1 before or it is disabled."),
			[]string{"gcloud services enable cloudkms.googleapis.com"}},
		{"no key", "", said(404, "CryptoKey "+keyName+" not found."),
			[]string{"404: CryptoKey", "there is no such key: mend its name, or create it (`gcloud kms keys create --purpose=encryption`)"}},
		{"another key's", kmsDecrypt, said(400, "Decryption failed: verify that 'name' refers to the correct CryptoKey."),
			[]string{"400: Decryption failed", "it was encrypted with another key than this, or was changed"}},
		{"a version that is gone", "", said(400, keyName+"/cryptoKeyVersions/1 is not enabled, current state is: DESTROYED."),
			[]string{"current state is: DESTROYED", "enable or restore that version", "what a destroyed one has encrypted is lost"}},
		{"a key for something else", "", said(400, keyName+" is not valid for this operation: purpose is ASYMMETRIC_SIGN"),
			[]string{"name a key that was created with --purpose=encryption"}},
		{"something else that is wrong", kmsEncrypt, said(400, "Invalid argument."), []string{"400: Invalid argument."}},
	}
	w := newKMSWire(t)
	k := w.open(t, quick())
	methods := kmsMethods(wrapped(t, k))
	for _, test := range tests {
		for op, do := range methods {
			if test.only != "" && test.only != op {
				continue
			}
			t.Run(test.name+", "+string(op), func(t *testing.T) {
				w.always(test.fault)
				before := w.asked.Load()
				got, err := do(t.Context(), k)
				if err == nil {
					t.Fatalf("got %x, want an error", got)
				}
				for _, want := range append(test.want, string(op)+" with the KMS key "+keyName+": ") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not say %q", err, want)
					}
				}
				if strings.Contains(err.Error(), "Details") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q is not for people", err)
				}
				if n := w.asked.Load() - before; n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		}
	}
}

func TestKMSOfAnotherKey(t *testing.T) {
	w := newKMSWire(t)
	ciphertext := wrapped(t, w.open(t, quick()))
	cfg := w.config()
	cfg.Key = keyName + "2"
	other, err := openKMS(t.Context(), cfg, quick())
	if err != nil {
		t.Fatal(err)
	}
	got, err := other.Decrypt(t.Context(), ciphertext)
	if err == nil || !strings.Contains(err.Error(), "it was encrypted with another key than this, or was changed") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKMSSurvivesPassingFaults(t *testing.T) {
	faults := append(passingFaults(),
		fault{name: "half a reply", damage: half},
		fault{name: "half a reply as if it were all", damage: short},
		fault{name: "a changed reply", damage: replaced(`"(plain|cipher)text":"..`, `"${1}text":"//`)},
		fault{name: "a changed checksum", damage: replaced(`text[cC]rc32c":"\d`, `textCrc32c":"7`)},
		fault{name: "no checksum", damage: replaced(`textCrc32c`, `textChecksum`)},
		fault{name: "no JSON", damage: replaced(`(?s)^.*$`, `<html>`)},
		fault{name: "JSON of another shape", damage: replaced(`"(plain|cipher)text":"[^"]*"`, `"${1}text":7`)},
		fault{name: "no base64", damage: replaced(`"(plain|cipher)text":"`, `"${1}text":"!`)},
	)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // stalls are waited for
			w := newKMSWire(t)
			pace := quick()
			if f.stall {
				pace.stall = time.Second // longer than most answers take on a busy machine
			}
			k := w.open(t, pace)
			ciphertext := wrapped(t, k)
			for op, do := range kmsMethods(ciphertext) {
				before := w.asked.Load()
				w.inject(f, f)
				got, err := do(t.Context(), k)
				if op == kmsEncrypt && err == nil {
					got, err = k.Decrypt(t.Context(), got)
				}
				if err != nil || string(got) != "secret" {
					t.Errorf("%s: got %q, %v", op, got, err)
				}
				want := map[kmsOperation]int64{kmsEncrypt: 4, kmsDecrypt: 3}[op]
				if n := w.asked.Load() - before; n < want || n > want && !f.stall { // what takes long is taken for stalled
					t.Errorf("%s: %d requests, want %d", op, n, want)
				}
			}
		})
	}
}

// What was not received as it was sent is not written down, which would be the
// end of everything that the key has sealed.
func TestKMSEncryptIsCertain(t *testing.T) {
	faults := []fault{
		{name: "the request was not checked", damage: replaced(`"verifiedPlaintextCrc32c":true`, `"verifiedPlaintextCrc32c":false`)},
		{name: "another key was used", damage: replaced(`cryptoKeys/state/`, `cryptoKeys/other/`)},
		{name: "the reply was changed", damage: replaced(`"ciphertext":"..`, `"ciphertext":"//`)},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			w := newKMSWire(t)
			k := w.open(t, quick())
			w.always(f)
			got, err := k.Encrypt(t.Context(), []byte("secret"))
			if err == nil || !strings.Contains(err.Error(), "3 replies in a row were damaged") {
				t.Errorf("got %x, %v, want an error", got, err)
			}
			if n := w.asked.Load(); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	}
}

// The library logs what is sent where somebody asks it to by the environment.
func TestKMSIsNotLogged(t *testing.T) {
	t.Setenv("GOOGLE_SDK_GO_LOGGING_LEVEL", "debug")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = log, log
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	wrapped(t, newKMSWire(t).open(t, quick()))
	if said, err := os.ReadFile(log.Name()); err != nil || len(said) > 0 {
		t.Errorf("logged %q, %v", said, err)
	}
}

func TestKMSGivesUp(t *testing.T) {
	w := newKMSWire(t)
	pace := quick()
	pace.patience = 20 * time.Millisecond
	k := w.open(t, pace)
	w.always(answer(503, busy))
	_, err := k.Encrypt(t.Context(), []byte("secret"))
	for _, want := range []string{"it kept failing for 20ms: the service answered 503: We encountered", "try again later"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("the lease is lost")
	stuck := fault{stall: true, then: func() { cancel(because) }}
	w.always(stuck)
	if _, err := k.Encrypt(ctx, []byte("secret")); !errors.Is(err, because) {
		t.Errorf("got %v, want %v", err, because)
	}
}

func TestKMSCredentials(t *testing.T) {
	const token = `{"access_token":"abc","token_type":"Bearer","expires_in":3600}`
	tests := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"accepted", 200, token, ""},
		{"expired", 400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`,
			"have expired or were revoked: run `gcloud auth application-default login`"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer tokens.Close()
			account(t, tokens.URL)
			w := newKMSWire(t)
			var authorization atomic.Value
			w.look = func(r *http.Request) { authorization.Store(r.Header.Get("Authorization")) }
			cfg := w.config()
			cfg.HTTPClient = nil
			k, err := openKMS(t.Context(), cfg, quick())
			if err != nil {
				t.Fatal(err)
			}
			_, err = k.Encrypt(t.Context(), []byte("secret"))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil || authorization.Load() != "Bearer abc" {
				t.Errorf("got %v, authorization %q", err, authorization.Load())
			}
		})
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	_, err := OpenKMS(t.Context(), KMSConfig{Key: keyName})
	for _, want := range []string{"open KMS key " + keyName, "no usable Google credentials", login} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestKMSNames(t *testing.T) {
	for _, name := range []string{"", "gcp-kms://", "projects/acme", "file:///x", keyName + "/", keyName + "/cryptoKeyVersions/1",
		strings.Replace(keyName, "acme", "", 1), "gcp-kms:///" + keyName} {
		_, err := OpenKMS(t.Context(), KMSConfig{Key: name, HTTPClient: http.DefaultClient})
		want := fmt.Sprintf("open KMS key: %q is no name of a key: want gcp-kms://projects/", name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
}
