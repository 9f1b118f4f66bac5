package across

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/clusterapi/identity"
)

// secret makes keys as the stack's does.
type secret string

func (s secret) Derive(label string) ([]byte, error) {
	sum := sha256.Sum256([]byte(string(s) + "|" + label))
	return sum[:], nil
}

// identityFile is what the agent writes for the tasks of a namespace.
func identityFile(t *testing.T, namespace string) string {
	t.Helper()
	text, err := identity.New(secret("key"), "stack").File(namespace)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "actor.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Fact 23: peers of one namespace talk to each other, and to nobody else: neither is a
// client of another namespace served, nor does a client take such a server for its own.
func TestIdentities(t *testing.T) {
	mine, yours := identityFile(t, "across"), identityFile(t, "elsewhere")
	tests := []struct {
		name, server, client string
		refused              bool
	}{
		{"the same", mine, mine, false},
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
					case test.refused && (a.Error == nil || a.Error.Ran || a.Error.Code != actorrpc.CodeDenied && a.Error.Code != actorrpc.CodeUnavailable):
						t.Errorf("got %s, want that it is denied and did not run", a)
					}
				})
			}
			s.kill()
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
			if a := c.do(t, ask); a.Error == nil || a.Error.Code != actorrpc.CodeUnavailable {
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
			if e == nil || e.Code != actorrpc.CodeUnknownMethod || e.Message != `no method "ad"` {
				t.Errorf("got %+v, want an unknown method", e)
			}
		})
	}
}
