package across

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/keys"
)

// authorityOf is one of the tests' authorities, always the same one of a name.
func authorityOf(t *testing.T, name string) *identity.Authority {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	a, err := identity.NewAuthority(key, "stack")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// identityFile is what the agent of some host writes for the tasks of a namespace.
func identityFile(t *testing.T, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "actor.pem")
	writeIdentity(t, file, namespace, "first", "first")
	return file
}

// writeIdentity writes a file in place of another: of a key of its own, that an
// authority certifies, with the authorities that are trusted.
func writeIdentity(t *testing.T, file, namespace, by string, trusted ...string) {
	t.Helper()
	private, public, err := keys.NewIdentityKey()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authorityOf(t, by).Issue(public, namespace)
	if err != nil {
		t.Fatal(err)
	}
	var authorities [][]byte
	for _, name := range trusted {
		authorities = append(authorities, authorityOf(t, name).Certificate())
	}
	temp := file + ".new"
	err = errors.Join(os.WriteFile(temp, identity.File(private, certificate, authorities), 0o600), os.Rename(temp, file))
	if err != nil {
		t.Fatal(err)
	}
}

// Fact 23: peers of one namespace talk to each other, and to no others: neither is a
// client of another namespace served, nor does a client take such a server for its own.
func TestIdentities(t *testing.T) {
	mine, yours, sibling := identityFile(t, "across"), identityFile(t, "elsewhere"), identityFile(t, "across")
	tests := []struct {
		name, server, client string
		refused              bool
	}{
		{"the same", mine, mine, false},
		{"the same namespace on another host", mine, sibling, false},
		{"a client of another namespace", mine, yours, true},
		{"a client without", mine, "", true},
		{"a server without", "", mine, true},
	}
	for _, served := range languages() {
		for _, test := range tests {
			s := startServer(t, served, 0, "FRAY_ACTOR_IDENTITY="+test.server)
			for _, calling := range languages() {
				t.Run(test.name+", from "+string(calling)+" to "+string(served), func(t *testing.T) {
					a := newCaller(t, calling).do(t, order{
						Do: "call", Address: s.address, Identity: test.client, Method: "add", Args: "[[1],{}]", Resolve: 1,
					})
					switch {
					case !test.refused && a.Error != nil:
						t.Errorf("got %s, want a result", a)
					case test.refused && (a.Error == nil || a.Error.Ran || a.Error.Code != rpcerror.CodeDenied && a.Error.Code != rpcerror.CodeUnavailable):
						t.Errorf("got %s, want that it is denied and did not run", a)
					}
				})
			}
			s.kill()
		}
	}
}

// TestAuthoritiesComeAndGo: a server that runs takes clients which another leader has
// certified once its file has that authority, and none any more that it has lost; and
// so does a client that runs.
func TestAuthoritiesComeAndGo(t *testing.T) {
	for _, served := range languages() {
		for _, calling := range languages() {
			t.Run("from "+string(calling)+" to "+string(served), func(t *testing.T) {
				server, client := filepath.Join(t.TempDir(), "actor.pem"), filepath.Join(t.TempDir(), "actor.pem")
				writeIdentity(t, server, "across", "first", "first")
				writeIdentity(t, client, "across", "second", "first", "second")
				s, c := startServer(t, served, 0, "FRAY_ACTOR_IDENTITY="+server), newCaller(t, calling)
				defer s.kill()
				call := func(resolve float64) answer {
					// A client of its own for each, which has no connection yet.
					return newCaller(t, calling).do(t, order{Do: "call", Address: s.address, Identity: client, Method: "add", Args: "[[1],{}]", Resolve: resolve})
				}
				if a := call(1); a.Error == nil || a.Error.Code != rpcerror.CodeUnavailable || a.Error.Ran {
					t.Errorf("before the server knows the authority: got %s, want that the client may try again", a)
				}
				// A call that waits goes through as soon as it does.
				waiting := make(chan answer, 1)
				go func() {
					waiting <- c.do(t, order{Do: "call", Address: s.address, Identity: client, Method: "add", Args: "[[1],{}]", Resolve: 60})
				}()
				writeIdentity(t, server, "across", "first", "first", "second")
				if a := <-waiting; a.Error != nil {
					t.Errorf("once the server knows it: got %s, want a result", a)
				}
				writeIdentity(t, server, "across", "first", "first")
				if a := call(1); a.Error == nil || a.Error.Ran {
					t.Errorf("once it is gone: got %s, want that it is refused", a)
				}
				writeIdentity(t, client, "across", "first", "second")
				if a := call(1); a.Error == nil || a.Error.Code != rpcerror.CodeUnavailable || a.Error.Ran {
					t.Errorf("a server whose authority the client does not know: got %s, want that it is refused", a)
				}
			})
		}
	}
}

// grpcio's own TLS library takes the identities of namespaces: a general client in
// Python reaches servers in both languages through reflection.
func TestGeneralClientInPython(t *testing.T) {
	mine, yours := identityFile(t, "across"), identityFile(t, "elsewhere")
	for _, served := range languages() {
		t.Run("to "+string(served), func(t *testing.T) {
			c, s := newCaller(t, python), startServer(t, served, 0, "FRAY_ACTOR_IDENTITY="+mine)
			ask := order{Do: "grpc", Address: s.address, Identity: mine, Method: "echo", Args: `[[[1, "a"]],{}]`}
			if a := c.do(t, ask); a.Error != nil || canonical([]byte(a.Value)) != `[1,"a"]` {
				t.Errorf("got %s, want what was sent", a)
			}
			ask.Identity = yours
			if a := c.do(t, ask); a.Error == nil || a.Error.Code != rpcerror.CodeUnavailable {
				t.Errorf("of another namespace: got %s, want that it is refused", a)
			}
		})
	}
}

// The callers in Go reach servers in both languages by gRPC as well.
func TestGeneralClientInGo(t *testing.T) {
	mine := identityFile(t, "across")
	for _, served := range languages() {
		t.Run("to "+string(served), func(t *testing.T) {
			c, s := newCaller(t, golang), startServer(t, served, 0, "FRAY_ACTOR_IDENTITY="+mine)
			a := c.do(t, order{Do: "call", Address: "grpc://" + s.address, Identity: mine, Method: "echo", Args: `[[[1,"a"]],{}]`})
			if a.Value != `[1,"a"]` {
				t.Errorf("got %s, want what was sent", a)
			}
			e := c.do(t, order{Do: "call", Address: "grpc://" + s.address, Identity: mine, Method: "ad", Args: "[[1],{}]"}).Error
			if e == nil || e.Code != rpcerror.CodeUnknownMethod || e.Message != `no method "ad"` {
				t.Errorf("got %+v, want an unknown method", e)
			}
		})
	}
}
