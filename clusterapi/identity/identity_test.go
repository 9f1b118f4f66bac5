package identity_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/clusterapi/identity"
)

// key makes a P-256 key; of one seed always the same one.
func key(t *testing.T, seed string) *ecdsa.PrivateKey {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func authority(t *testing.T, seed, stack string) *identity.Authority {
	t.Helper()
	a, err := identity.NewAuthority(key(t, seed), stack)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issued is the certificate of a host's key.
func issued(t *testing.T, a *identity.Authority, host, namespace string) []byte {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(&key(t, host).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := a.Issue(public, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// file is a host's, with an authority that follows from a seed.
func file(t *testing.T, seed, host, namespace string) []byte {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(key(t, host))
	if err != nil {
		t.Fatal(err)
	}
	a := authority(t, seed, "s")
	text := identity.File(private, issued(t, a, host, namespace), [][]byte{a.Certificate()})
	gotKey, gotCertificate, err := identity.ParseFile(text)
	if err != nil || !bytes.Equal(gotKey, private) || !bytes.Equal(gotCertificate, issued(t, a, host, namespace)) {
		t.Fatalf("the file is read as something else, %v", err)
	}
	return text
}

func TestCertificatesSayWhatTheyAre(t *testing.T) {
	a := authority(t, "a", "s")
	root, err := x509.ParseCertificate(a.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(issued(t, a, "h", "rl"+strings.Repeat("x", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if !root.IsCA || !root.MaxPathLenZero || leaf.IsCA {
		t.Errorf("got authority: IsCA %t, path %d; host: IsCA %t", root.IsCA, root.MaxPathLen, leaf.IsCA)
	}
	if got, want := leaf.Subject.CommonName, "fray actors of rl"+strings.Repeat("x", 47); got != want {
		t.Errorf("got the name %q, want %q", got, want)
	}
	if got, want := leaf.URIs[0].String(), "fray://s/rl"+strings.Repeat("x", 100); len(leaf.URIs) != 1 || got != want {
		t.Errorf("got the namespace %q, want %q", got, want)
	}
	if leaf.NotBefore.Year() != 1970 || leaf.NotAfter.Year() != 9999 || len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != identity.ServerName {
		t.Errorf("got %s to %s, names %q", leaf.NotBefore, leaf.NotAfter, leaf.DNSNames)
	}
}

func TestIssuedBy(t *testing.T) {
	a, b := authority(t, "a", "s"), authority(t, "b", "s")
	certificate := issued(t, a, "h", "rl")
	if !identity.IssuedBy(certificate, a.Certificate()) || identity.IssuedBy(certificate, b.Certificate()) ||
		identity.IssuedBy(certificate, certificate) || identity.IssuedBy(nil, a.Certificate()) {
		t.Error("a certificate is taken for another authority's")
	}
}

func TestNoIdentity(t *testing.T) {
	if _, err := identity.NewAuthority(key(t, "a"), ""); err == nil {
		t.Error("a stack without a mark has an authority")
	}
	public, err := x509.MarshalPKIXPublicKey(&key(t, "h").PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	edwards, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKIXPublicKey(edwards)
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		key       []byte
		namespace string
	}{"no namespace": {public, ""}, "no key": {nil, "rl"}, "another kind of key": {other, "rl"}} {
		if _, err := authority(t, "a", "s").Issue(of.key, of.namespace); err == nil {
			t.Errorf("%s: it is certified", name)
		}
	}
}

// both are how a process with an identity serves and dials.
func both(t *testing.T, text []byte) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("there is no certificate in the file")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ServerName: identity.ServerName,
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

func TestGoAcceptsItsOwnAndNoOther(t *testing.T) {
	rl, eval := both(t, file(t, "k", "h", "rl")), both(t, file(t, "other", "h", "rl"))
	tests := []struct {
		name           string
		server, client *tls.Config
		ok             bool
	}{
		{"own", rl, rl, true},
		{"server of another", eval, rl, false},
		{"client of another", rl, &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: eval.Certificates, ServerName: identity.ServerName, RootCAs: rl.RootCAs,
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			address, result := accept(t, test.server)
			conn, err := tls.Dial("tcp", address, test.client)
			if err == nil {
				err = errors.Join(handshake(conn), conn.Close())
			}
			if err := errors.Join(err, <-result); (err == nil) != test.ok {
				t.Errorf("got %v, want accepted %t", err, test.ok)
			}
		})
	}
}

// accept serves one connection, and says how that went.
func accept(t *testing.T, config *tls.Config) (address string, result <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = serve(tls.Server(conn, config))
			conn.Close()
		}
		served <- err
	}()
	return l.Addr().String(), served
}

const hello = "hello"

// serve answers one greeting.
func serve(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	got := make([]byte, len(hello))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	_, err := c.Write(got)
	return err
}

func handshake(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := c.Write([]byte(hello)); err != nil {
		return err
	}
	got := make([]byte, len(hello))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != hello {
		return fmt.Errorf("got %q, %w", got, err)
	}
	return nil
}

// python connects, or accepts one connection, and begins the handshake or answers it; it is as
// strict about certificates as its library can be.
const python = `
import socket, ssl, sys
role, identity, port = sys.argv[1:]
purpose = ssl.Purpose.SERVER_AUTH if role == "client" else ssl.Purpose.CLIENT_AUTH
context = ssl.create_default_context(purpose, cafile=identity)
context.load_cert_chain(identity)
context.verify_mode = ssl.CERT_REQUIRED
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.minimum_version = ssl.TLSVersion.TLSv1_3
if role == "client":
    with context.wrap_socket(socket.create_connection(("127.0.0.1", int(port)), 60), server_hostname="fray-actors") as s:
        s.sendall(b"hello")
        assert s.recv(5) == b"hello"
else:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        print(listener.getsockname()[1], flush=True)
        with context.wrap_socket(listener.accept()[0], server_side=True) as s:
            s.sendall(s.recv(5))
            s.recv(1)
`

// runs starts the program, which ends with the test.
func runs(t *testing.T, role, identityFile, port string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("this machine has no python3")
	}
	cmd := exec.CommandContext(t.Context(), program, "-c", python, role, identityFile, port)
	var output bytes.Buffer
	cmd.Stderr = &output
	return cmd, &output
}

func written(t *testing.T) (path string, config *tls.Config) {
	t.Helper()
	text := file(t, "k", "h", "rl")
	path = filepath.Join(t.TempDir(), "actor.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, both(t, text)
}

func TestPythonCallsGo(t *testing.T) {
	path, config := written(t)
	address, result := accept(t, config)
	_, port, _ := net.SplitHostPort(address)
	cmd, output := runs(t, "client", path, port)
	if err := cmd.Run(); err != nil {
		t.Fatalf("got %v, want an answer\n%s", err, output)
	}
	if err := <-result; err != nil {
		t.Errorf("got %v, want an answer\n%s", err, output)
	}
}

func TestGoCallsPython(t *testing.T) {
	path, config := written(t)
	cmd, output := runs(t, "server", path, "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var port string
	_, err = fmt.Fscanln(out, &port)
	if err == nil {
		var conn *tls.Conn
		if conn, err = tls.Dial("tcp", net.JoinHostPort("127.0.0.1", port), config); err == nil {
			err = errors.Join(handshake(conn), conn.Close())
		}
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Errorf("got %v, want an answer\n%s", err, output)
	}
}
