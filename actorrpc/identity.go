package actorrpc

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
)

// ALPN names of what a server speaks within TLS.
const (
	protocolFrames = "fray-actor/1"
	protocolGRPC   = "h2"
	protocolHTTP   = "http/1.1"
)

// Identity is what the members of a namespace prove to each other that they are
// that: one certificate, which all of them have the key of. Package
// clusterapi/identity makes it, and the agent gives it to a task in the file that
// FRAY_ACTOR_IDENTITY names.
type Identity struct{ certificate tls.Certificate }

// LoadIdentity reads an identity from a PEM file with a certificate and its key.
func LoadIdentity(file string) (*Identity, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the actor identity: %w", err)
	}
	id, err := ParseIdentity(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return id, nil
}

// ParseIdentity reads an identity from PEM.
func ParseIdentity(text []byte) (*Identity, error) {
	certificate, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("parse the actor identity: %w", err)
	}
	return &Identity{certificate}, nil
}

// ServerTLS takes peers that show the same certificate, and no others.
func (id *Identity) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate},
		NextProtos: []string{protocolFrames, protocolGRPC, protocolHTTP},
		// There is no authority to ask: verify compares, the handshake proves the key.
		ClientAuth: tls.RequireAnyClientCert, VerifyConnection: id.verify,
	}
}

// ClientTLS accepts a server that shows the same certificate, and no other.
func (id *Identity) ClientTLS() *tls.Config { return id.clientTLS(protocolFrames) }

func (id *Identity) clientTLS(protocol string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate}, NextProtos: []string{protocol},
		// As in ServerTLS.
		InsecureSkipVerify: true, VerifyConnection: id.verify,
	}
}

// errOtherNamespace is what both sides say of a peer with another certificate.
var errOtherNamespace = errors.New("the peer has another identity: " + messageOtherNamespace)

const messageOtherNamespace = "peers of another namespace are not served"

func (id *Identity) verify(c tls.ConnectionState) error {
	if len(c.PeerCertificates) == 0 || !bytes.Equal(c.PeerCertificates[0].Raw, id.certificate.Certificate[0]) {
		return errOtherNamespace
	}
	return nil
}
