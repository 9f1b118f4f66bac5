package actorrpc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/keys"
)

// authority is one of the tests' own.
func authority(t *testing.T) *identity.Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a, err := identity.NewAuthority(key, "stack")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newIdentity is a host's in a namespace, as a file too.
func newIdentity(t *testing.T, by *identity.Authority, namespace string) (id *actorrpc.Identity, file string) {
	t.Helper()
	private, public, err := keys.NewIdentityKey()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := by.Issue(public, namespace)
	if err != nil {
		t.Fatal(err)
	}
	text := identity.File(private, certificate, [][]byte{by.Certificate()})
	file = filepath.Join(t.TempDir(), "actor.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err = actorrpc.LoadIdentity(file); err != nil {
		t.Fatal(err)
	}
	return id, file
}

// Fact 23: only peers of the namespace talk to each other.
func TestFact23Identities(t *testing.T) {
	here := authority(t)
	mine, _ := newIdentity(t, here, "mine")
	sibling, _ := newIdentity(t, here, "mine")
	yours, _ := newIdentity(t, here, "yours")
	foreign, _ := newIdentity(t, authority(t), "mine")
	tests := []struct {
		name           string
		server, client *actorrpc.Identity
		code           actorrpc.Code
	}{
		{"both", mine, mine, ""},
		{"two hosts", mine, sibling, ""},
		{"another stack's", mine, foreign, actorrpc.CodeUnavailable},
		{"neither", nil, nil, ""},
		{"another's", mine, yours, actorrpc.CodeDenied},
		{"a client without", mine, nil, actorrpc.CodeDenied},
		{"a server without", nil, mine, actorrpc.CodeDenied},
	}
	for _, test := range tests {
		server, _ := serve(t, host.Config{Host: "127.0.0.1", Identity: test.server}, map[string]any{"counter": &counter{}})
		for way, url := range urls(server.Address()) {
			t.Run(test.name+", "+way, func(t *testing.T) {
				config := actorrpc.Config{Identity: test.client, ResolveTimeout: patience}
				if test.code != "" {
					config.ResolveTimeout = 2 * time.Second
				}
				client := dialed(t, config, url)
				n, err := actorrpc.Call[int](t.Context(), lookup(t, client, "counter"), "increment", 1)
				want := test.code
				if want != "" && way == "grpc" {
					want = actorrpc.CodeUnavailable // why the connection ends is not known for sure
				}
				if actorrpc.CodeOf(err) != want {
					t.Errorf("got %d, %v; want code %q", n, err, want)
				}
			})
		}
	}
}

func TestLoadIdentity(t *testing.T) {
	_, file := newIdentity(t, authority(t), "mine")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"empty": "", "no key": string(text[strings.Index(string(text), "-----BEGIN CERT"):]), "no PEM": "hello"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := actorrpc.LoadIdentity(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error is %v, want one that names the file", name, err)
		}
	}
	if _, err := actorrpc.LoadIdentity("nowhere.pem"); err == nil {
		t.Error("a file that is not there was read")
	}
}
