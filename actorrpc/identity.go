package actorrpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ALPN names of what a server speaks within TLS.
const (
	protocolFrames = "fray-actor/1"
	protocolGRPC   = "h2"
	protocolHTTP   = "http/1.1"
)

// Identity is what the members of a namespace prove to each other that they are
// that: a key, its certificate for the namespace, and the authorities whose
// certificates are accepted. Package clusterapi/identity makes it, and the agent gives
// it to a task in the file that FRAY_ACTOR_IDENTITY names, which it replaces when
// authorities come and go. It may be used concurrently.
type Identity struct {
	file string // "": it stays as it is
	// renew brings the file up to date, when a server's authority is not in it; nil:
	// another process does.
	renew func(context.Context)

	mu    sync.Mutex
	stamp stamp // of file, when it was read
	parts *identityParts
}

// stamp distinguishes contents of a file.
type stamp struct {
	modified time.Time
	size     int64
}

// identityParts are those of one content of the file.
type identityParts struct {
	certificate tls.Certificate
	roots       *x509.CertPool
	space       string // that the certificate is for, "" where it names none
}

// LoadIdentity reads an identity from a PEM file with a key, its certificate, and
// those of authorities. It is read again when the file has changed.
func LoadIdentity(file string) (*Identity, error) {
	id := &Identity{file: file}
	if err := id.load(); err != nil {
		return nil, err
	}
	return id, nil
}

// ParseIdentity reads an identity from PEM.
func ParseIdentity(text []byte) (*Identity, error) {
	parts, err := parseIdentity(text)
	if err != nil {
		return nil, err
	}
	return &Identity{parts: parts}, nil
}

func parseIdentity(text []byte) (*identityParts, error) {
	certificate, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("parse the actor identity: %w", err)
	}
	p := &identityParts{certificate: certificate, roots: x509.NewCertPool(), space: spaceOf(certificate.Leaf)}
	p.certificate.Certificate = certificate.Certificate[:1] // the others are authorities, which peers have
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse the actor identity: %w", err)
		}
		p.roots.AddCert(authority)
	}
	return p, nil
}

// spaceOf is which namespace a certificate is for.
func spaceOf(c *x509.Certificate) string {
	if len(c.URIs) != 1 {
		return ""
	}
	return c.URIs[0].String()
}

// load reads the file if it has changed.
func (id *Identity) load() error {
	id.mu.Lock()
	defer id.mu.Unlock()
	info, err := os.Stat(id.file)
	if err != nil {
		return fmt.Errorf("read the actor identity: %w", err)
	}
	now := stamp{info.ModTime(), info.Size()}
	if id.parts != nil && now == id.stamp {
		return nil
	}
	text, err := os.ReadFile(id.file)
	if err != nil {
		return fmt.Errorf("read the actor identity: %w", err)
	}
	parts, err := parseIdentity(text)
	if err != nil {
		return fmt.Errorf("%s: %w", id.file, err)
	}
	id.parts, id.stamp = parts, now
	return nil
}

// current is the identity as of now. A file that cannot be read any more leaves it as
// it was: its task is about to end.
func (id *Identity) current() *identityParts {
	if id.file != "" {
		_ = id.load()
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.parts
}

// ServerTLS takes peers whose certificate an authority has issued for the same
// namespace, and no others.
func (id *Identity) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := id.current()
			return &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{now.certificate},
				NextProtos: []string{protocolFrames, protocolGRPC, protocolHTTP},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: now.roots,
				VerifyConnection: func(c tls.ConnectionState) error { return now.sameSpace(c.PeerCertificates) },
			}, nil
		},
	}
}

// ClientTLS accepts a server by the same rule, and no other.
func (id *Identity) ClientTLS() *tls.Config { return id.clientTLS(protocolFrames) }

func (id *Identity) clientTLS(protocol string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &id.current().certificate, nil
		},
		// A server is known by its namespace, not by its host's name; verify checks that,
		// by the authorities of the moment.
		InsecureSkipVerify: true,
		VerifyConnection:   func(c tls.ConnectionState) error { return id.current().verify(c.PeerCertificates) },
	}
}

var (
	// errOtherNamespace is the error of both sides for a peer of another namespace.
	errOtherNamespace = errors.New("the peer has another identity: " + messageOtherNamespace)
	// errUnknownAuthority may pass: who leads since a moment ago is not known everywhere.
	errUnknownAuthority = errors.New("the peer's identity was issued by an authority that is not known here; it may be published in a moment")
)

const messageOtherNamespace = "peers of another namespace are not served"

// verify checks a server's certificate.
func (p *identityParts) verify(peer []*x509.Certificate) error {
	if len(peer) == 0 {
		return errOtherNamespace
	}
	_, err := peer[0].Verify(x509.VerifyOptions{Roots: p.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return errUnknownAuthority
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errOtherNamespace, err)
	}
	return p.sameSpace(peer)
}

// sameSpace accepts a verified certificate of the same namespace, or the very same one.
func (p *identityParts) sameSpace(peer []*x509.Certificate) error {
	if len(peer) > 0 && (bytes.Equal(peer[0].Raw, p.certificate.Certificate[0]) || p.space != "" && spaceOf(peer[0]) == p.space) {
		return nil
	}
	return errOtherNamespace
}
