package actorrpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/keys"
)

// A program whose file lacks the authority of a new leader asks for it at once, instead
// of when the file is next written.
func TestUnknownAuthorityIsAskedFor(t *testing.T) {
	before, leader := newTestAuthority(t), newTestAuthority(t)
	private, public, err := keys.NewIdentityKey()
	if err != nil {
		t.Fatal(err)
	}
	file := func(issuer *identity.Authority, trusted ...*identity.Authority) []byte {
		certificate, err := issuer.Issue(public, "rl")
		if err != nil {
			t.Fatal(err)
		}
		var known [][]byte
		for _, a := range trusted {
			known = append(known, a.Certificate())
		}
		return identity.File(private, certificate, known)
	}
	server, err := ParseIdentity(file(leader, leader, before))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.ServerTLS())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = c.(*tls.Conn).HandshakeContext(t.Context())
				_ = c.Close()
			}()
		}
	}()
	path := filepath.Join(t.TempDir(), "actor.pem")
	write := func(text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Error(err)
		}
	}
	write(file(before, before))
	client, err := LoadIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	client.renew = func(context.Context) {
		asked++
		write(file(before, leader, before))
	}
	d := &dialer{shared: shared{config: Config{Identity: client}}}
	for attempt, want := range []error{errUnknownAuthority, nil} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = d.secure(t.Context(), c); !errors.Is(err, want) {
			t.Errorf("attempt %d: error is %v, want %v", attempt, err, want)
		}
		_ = c.Close()
	}
	if asked != 1 {
		t.Errorf("the identity was asked for %d times, want once", asked)
	}
}

func newTestAuthority(t *testing.T) *identity.Authority {
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
