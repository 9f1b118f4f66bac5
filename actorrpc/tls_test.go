package actorrpc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
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
		code           rpcerror.Code
	}{
		{"both", mine, mine, ""},
		{"two hosts", mine, sibling, ""},
		{"another stack's", mine, foreign, rpcerror.CodeUnavailable},
		{"neither", nil, nil, ""},
		{"another's", mine, yours, rpcerror.CodeDenied},
		{"a client without", mine, nil, rpcerror.CodeDenied},
		{"a server without", nil, mine, rpcerror.CodeDenied},
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
					want = rpcerror.CodeUnavailable // why the connection ends is not known for sure
				}
				if rpcerror.CodeOf(err) != want {
					t.Errorf("got %d, %v; want code %q", n, err, want)
				}
			})
		}
	}
}

// failures hears of each attempt to connect that failed.
type failures struct {
	slog.Handler
	heard chan struct{}
}

func (f failures) Enabled(context.Context, slog.Level) bool { return true }

func (f failures) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "connecting failed" {
		select {
		case f.heard <- struct{}{}:
		default:
		}
	}
	return nil
}

// A server that does not know a new authority yet ends the connection, which the client
// notices at its next write or at its first read. Questions are asked again until it
// knows it, as calls are.
func TestQuestionsOutlastANewAuthority(t *testing.T) {
	old, young := authority(t), authority(t)
	roots := [][]byte{old.Certificate(), young.Certificate()}
	write := func(by *identity.Authority, roots [][]byte, file string) {
		private, public, err := keys.NewIdentityKey()
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := by.Issue(public, "mine")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+".new", identity.File(private, certificate, roots), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	for name, ask := range map[string]func(*actorrpc.Client, actorrpc.Handle, string) (int, error){
		"methods": func(c *actorrpc.Client, h actorrpc.Handle, _ string) (int, error) {
			found, err := c.Methods(t.Context(), h)
			return len(found), err
		},
		"actors": func(c *actorrpc.Client, _ actorrpc.Handle, address string) (int, error) {
			found, err := c.Actors(t.Context(), resolver.Endpoint{Address: address})
			return len(found), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, mine := filepath.Join(t.TempDir(), "server.pem"), filepath.Join(t.TempDir(), "client.pem")
			write(old, roots[:1], theirs)
			write(young, roots, mine)
			serves, err := actorrpc.LoadIdentity(theirs)
			if err != nil {
				t.Fatal(err)
			}
			asks, err := actorrpc.LoadIdentity(mine)
			if err != nil {
				t.Fatal(err)
			}
			server, _ := serve(t, host.Config{Host: "127.0.0.1", Identity: serves}, map[string]any{"counter": &counter{}})
			heard := failures{slog.DiscardHandler, make(chan struct{}, 1)}
			client := dialed(t, actorrpc.Config{Identity: asks, ResolveTimeout: patience, Log: slog.New(heard)}, urls(server.Address())["frames"])
			var n int
			var failed error
			done := make(chan struct{})
			go func() {
				defer close(done)
				n, failed = ask(client, lookup(t, client, "counter"), server.Address())
			}()
			select {
			case <-heard.heard:
			case <-done:
			}
			write(old, roots, theirs)
			<-done
			if failed != nil || n == 0 {
				t.Errorf("got %d, %v", n, failed)
			}
		})
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
