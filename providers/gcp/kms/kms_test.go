package kms

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

	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/keyring"
)

var _ keyring.KMS = (*Key)(nil)

const keyName = "projects/acme/locations/global/keyRings/fray/cryptoKeys/state"

func (w *kmsWire) open(t *testing.T, pace client.Pace) *Key {
	t.Helper()
	k, err := open(t.Context(), w.config(), pace)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (w *kmsWire) config() Config {
	return Config{Key: "gcp-kms://" + keyName, Endpoint: w.URL + "/", HTTPClient: w.Client()}
}

// kmsMethods are both, on what the service has encrypted before.
func kmsMethods(wrapped []byte) map[kmsOperation]func(context.Context, *Key) ([]byte, error) {
	return map[kmsOperation]func(context.Context, *Key) ([]byte, error){
		kmsEncrypt: func(ctx context.Context, k *Key) ([]byte, error) { return k.Encrypt(ctx, []byte("secret")) },
		kmsDecrypt: func(ctx context.Context, k *Key) ([]byte, error) { return k.Decrypt(ctx, wrapped) },
	}
}

func wrapped(t *testing.T, k *Key) []byte {
	t.Helper()
	ciphertext, err := k.Encrypt(t.Context(), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	return ciphertext
}

func TestKMSOpensWhatItEncrypted(t *testing.T) {
	w := newKMSWire(t)
	k := w.open(t, clienttest.Quick())
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
		return open(ctx, cfg, clienttest.Quick())
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
	w.always(clienttest.Answer(403, `{"error":{"code":403,"message":"Permission denied."}}`))
	_, err = k.Open(t.Context(), keyring.Unlock{KMS: openers})
	if !errors.Is(err, keyring.ErrLocked) || !strings.Contains(err.Error(), "roles/cloudkms.cryptoKeyEncrypterDecrypter") {
		t.Errorf("got %v, want ErrLocked and what to do", err)
	}
}

// Each error says which key, what was found and what to do, and comes at once.
func TestKMSErrorsSayWhatToDo(t *testing.T) {
	said := func(code int, message string) clienttest.Fault {
		return clienttest.Answer(code, fmt.Sprintf(`{"error":{"code":%d,"message":%q,"details":[{"@type":"x"}]}}`, code, message))
	}
	tests := []struct {
		name  string
		only  kmsOperation // "": both
		fault clienttest.Fault
		want  []string
	}{
		{"expired credentials", "", clienttest.Answer(401, clienttest.NoLogin), []string{"Invalid Credentials", "gcloud auth application-default login"}},
		{"a right that is missing", kmsDecrypt,
			said(403, "Permission 'cloudkms.cryptoKeyVersions.useToDecrypt' denied on resource 'x' (or it may not exist)."),
			[]string{"the service answered 403: Permission '", "the permission cloudkms.cryptoKeyVersions.useToDecrypt on the key is missing",
				"roles/cloudkms.cryptoKeyEncrypterDecrypter"}},
		{"a right that is not named", kmsEncrypt, clienttest.Answer(403, ""),
			[]string{"the service answered 403 Forbidden", "the permission cloudkms.cryptoKeyVersions.useToEncrypt on the key is missing"}},
		{"a service that is off", "",
			said(403, "Cloud Key Management Service (KMS) API has not been used in project 1 before or it is disabled."),
			[]string{"gcloud services enable cloudkms.googleapis.com"}},
		{"no key", "", said(404, "CryptoKey "+keyName+" not found."),
			[]string{"404: CryptoKey", "there is no such key: correct its name, or create it (`gcloud kms keys create --purpose=encryption`)"}},
		{"another key's", kmsDecrypt, said(400, "Decryption failed: verify that 'name' refers to the correct CryptoKey."),
			[]string{"400: Decryption failed", "it was encrypted with another key than this, or was changed"}},
		{"a version that is gone", "", said(400, keyName+"/cryptoKeyVersions/1 is not enabled, current state is: DESTROYED."),
			[]string{"current state is: DESTROYED", "enable or restore that version", "what a destroyed one has encrypted is lost"}},
		{"a key for something else", "", said(400, keyName+" is not valid for this operation: purpose is ASYMMETRIC_SIGN"),
			[]string{"name a key that was created with --purpose=encryption"}},
		{"something else that is wrong", kmsEncrypt, said(400, "Invalid argument."), []string{"400: Invalid argument."}},
	}
	w := newKMSWire(t)
	k := w.open(t, clienttest.Quick())
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
	ciphertext := wrapped(t, w.open(t, clienttest.Quick()))
	cfg := w.config()
	cfg.Key = keyName + "2"
	other, err := open(t.Context(), cfg, clienttest.Quick())
	if err != nil {
		t.Fatal(err)
	}
	got, err := other.Decrypt(t.Context(), ciphertext)
	if err == nil || !strings.Contains(err.Error(), "it was encrypted with another key than this, or was changed") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKMSSurvivesPassingFaults(t *testing.T) {
	faults := append(clienttest.PassingFaults(),
		clienttest.Fault{Name: "half a reply", Damage: clienttest.Half},
		clienttest.Fault{Name: "half a reply as if it were all", Damage: clienttest.Short},
		clienttest.Fault{Name: "a changed reply", Damage: replaced(`"(plain|cipher)text":"..`, `"${1}text":"//`)},
		clienttest.Fault{Name: "a changed checksum", Damage: replaced(`text[cC]rc32c":"\d`, `textCrc32c":"7`)},
		clienttest.Fault{Name: "no checksum", Damage: replaced(`textCrc32c`, `textChecksum`)},
		clienttest.Fault{Name: "no JSON", Damage: replaced(`(?s)^.*$`, `<html>`)},
		clienttest.Fault{Name: "JSON of another shape", Damage: replaced(`"(plain|cipher)text":"[^"]*"`, `"${1}text":7`)},
		clienttest.Fault{Name: "no base64", Damage: replaced(`"(plain|cipher)text":"`, `"${1}text":"!`)},
	)
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel() // stalls are waited for
			w := newKMSWire(t)
			pace := clienttest.Quick()
			if f.Stall {
				pace.Stall = time.Second // longer than most answers take on a busy machine
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
				if n := w.asked.Load() - before; n < want || n > want && !f.Stall { // what takes long is taken for stalled
					t.Errorf("%s: %d requests, want %d", op, n, want)
				}
			}
		})
	}
}

// A reply that was not received as it was sent is not recorded: all that the key has
// sealed would be lost.
func TestKMSEncryptIsCertain(t *testing.T) {
	faults := []clienttest.Fault{
		{Name: "the request was not checked", Damage: replaced(`"verifiedPlaintextCrc32c":true`, `"verifiedPlaintextCrc32c":false`)},
		{Name: "another key was used", Damage: replaced(`cryptoKeys/state/`, `cryptoKeys/other/`)},
		{Name: "the reply was changed", Damage: replaced(`"ciphertext":"..`, `"ciphertext":"//`)},
	}
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			w := newKMSWire(t)
			k := w.open(t, clienttest.Quick())
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

// The library logs requests if a variable of the environment asks for it.
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
	wrapped(t, newKMSWire(t).open(t, clienttest.Quick()))
	if said, err := os.ReadFile(log.Name()); err != nil || len(said) > 0 {
		t.Errorf("logged %q, %v", said, err)
	}
}

func TestKMSGivesUp(t *testing.T) {
	w := newKMSWire(t)
	pace := clienttest.Quick()
	pace.Patience = 20 * time.Millisecond
	k := w.open(t, pace)
	w.always(clienttest.Answer(503, clienttest.Busy))
	_, err := k.Encrypt(t.Context(), []byte("secret"))
	for _, want := range []string{"it kept failing for 20ms: the service answered 503: We encountered", "try again later"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("the lease is lost")
	stuck := clienttest.Fault{Stall: true, Then: func() { cancel(because) }}
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
			clienttest.Account(t, tokens.URL)
			w := newKMSWire(t)
			var authorization atomic.Value
			w.look = func(r *http.Request) { authorization.Store(r.Header.Get("Authorization")) }
			cfg := w.config()
			cfg.HTTPClient = nil
			k, err := open(t.Context(), cfg, clienttest.Quick())
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
	_, err := Open(t.Context(), Config{Key: keyName})
	for _, want := range []string{"open KMS key " + keyName, "no usable Google credentials", "gcloud auth application-default login"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestKMSNames(t *testing.T) {
	for _, name := range []string{"", "gcp-kms://", "projects/acme", "file:///x", keyName + "/", keyName + "/cryptoKeyVersions/1",
		strings.Replace(keyName, "acme", "", 1), "gcp-kms:///" + keyName} {
		_, err := Open(t.Context(), Config{Key: name, HTTPClient: http.DefaultClient})
		want := fmt.Sprintf("open KMS key: %q is no name of a key: want gcp-kms://projects/", name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
}
