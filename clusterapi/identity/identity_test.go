package identity_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
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

// derived makes a key of a label as the stack's key does, and no two alike.
type derived string

func (d derived) Derive(label string) ([]byte, error) {
	sum := sha256.Sum256([]byte(string(d) + "|" + label))
	return sum[:], nil
}

func file(t *testing.T, key, stack, namespace string) []byte {
	t.Helper()
	text, err := identity.New(derived(key), stack).File(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestVectors: all hosts of a stack make the same bytes, whatever version of
// fray they run. What is pinned here cannot change but with Label.
func TestVectors(t *testing.T) {
	for namespace, want := range map[string]string{
		"rl":             "9e2f87d4bb2f629acce09f7323033d01facfda53b25f23e9802ef70a13b72232",
		"module.eval.rl": "4a8e3ee4d58f5f1d5e3e9dfccafffb792cb6d47c65811100ad72182e01cc4ec3",
	} {
		sum := sha256.Sum256(file(t, "k", "stack-1", namespace))
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("namespace %s: got a file of SHA-256 %s, want %s", namespace, got, want)
		}
	}
}

func TestAnotherNamespaceStackOrKeyIsAnotherIdentity(t *testing.T) {
	seen := map[string]string{}
	for _, of := range [][3]string{
		{"k", "s", "rl"}, {"k", "s", "eval"}, {"k", "t", "rl"}, {"l", "s", "rl"}, {"k", "sr", "l"}, {"k", `s""r`, "l"},
	} {
		certificate, key, err := identity.New(derived(of[0]), of[1]).Of(of[2])
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(certificate), string(key)} {
			if other, ok := seen[text]; ok {
				t.Errorf("%q and %s have the same: %s", of, other, text)
			}
			seen[text] = fmt.Sprintf("%q", of)
		}
	}
}

func TestCertificateSaysWhatItIs(t *testing.T) {
	text, _, err := identity.New(derived("k"), "s").Of("rl" + strings.Repeat("x", 100))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Subject.CommonName, "fray actors of rl"+strings.Repeat("x", 47); got != want {
		t.Errorf("got the name %q, want %q", got, want)
	}
	if c.NotBefore.Year() != 1970 || c.NotAfter.Year() != 9999 || !c.IsCA || len(c.DNSNames) != 1 || c.DNSNames[0] != identity.ServerName {
		t.Errorf("got %s to %s, CA %t, names %q", c.NotBefore, c.NotAfter, c.IsCA, c.DNSNames)
	}
}

// broken derives what it holds, or fails.
type broken []byte

func (b broken) Derive(string) ([]byte, error) {
	if b == nil {
		return nil, errors.New("no rights")
	}
	return b, nil
}

func TestNoIdentity(t *testing.T) {
	tests := []struct {
		name string
		of   func() error
		want string
	}{
		{"no key", func() error { _, err := identity.New(broken(nil), "s").File("rl"); return err }, "no rights"},
		{"short key", func() error { _, err := identity.New(broken("short"), "s").File("rl"); return err }, "at least 32 bytes, got 5"},
		{"no stack", func() error { _, err := identity.New(derived("k"), "").File("rl"); return err }, "no name yet"},
		{"no namespace", func() error { _, err := identity.New(derived("k"), "s").File(""); return err }, "no name yet"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.of(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
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
	rl, eval := both(t, file(t, "k", "s", "rl")), both(t, file(t, "k", "s", "eval"))
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
				err = errors.Join(greet(conn), conn.Close())
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

func greet(c net.Conn) error {
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

// python connects, or accepts one connection, and greets or answers; it is as
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
	text := file(t, "k", "s", "rl")
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
			err = errors.Join(greet(conn), conn.Close())
		}
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Errorf("got %v, want an answer\n%s", err, output)
	}
}
