// Package identity makes what the actors of a namespace prove to each other that
// they are of one namespace: a P-256 key, which every TLS library takes, and a
// certificate of it that signs itself. Both follow from the stack's key alone, so that every host makes the
// same ones, byte for byte, and nothing is kept or exchanged: peers show that
// certificate and accept no other.
//
// How connections use it is not known here. The package has no clock and no
// randomness. Start with [New].
package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"
)

// Deriver derives keys from a secret that it keeps to itself.
type Deriver interface {
	Derive(label string) ([]byte, error)
}

// keySize is the least length of a derived key in bytes.
const keySize = 32

// Label names the key that is derived for identities among others of the stack.
const Label = "actor identities v1"

// ServerName is the name in every certificate: what a client must ask for where
// its library insists on checking one.
const ServerName = "fray-actors"

// Keeper makes the identities of one stack. It may be used concurrently.
type Keeper struct {
	from  Deriver
	stack string
}

// New returns the Keeper for the stack of a mark, from the stack's key.
func New(from Deriver, stack string) *Keeper { return &Keeper{from: from, stack: stack} }

// Of returns a namespace's certificate and its private key (PKCS #8), each as
// PEM. The error is that the stack's key cannot be had, or that there is no
// stack or namespace yet.
func (k *Keeper) Of(namespace string) (certPEM, keyPEM []byte, err error) {
	if k.stack == "" || namespace == "" {
		return nil, nil, errors.New("make an actor identity: the stack or the namespace has no name yet")
	}
	key, err := k.key(namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("make an actor identity: %w", err)
	}
	certificate, err := certify(key, namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("make an actor identity: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make an actor identity: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

// File is what FRAY_ACTOR_IDENTITY names: key and certificate in one PEM file.
func (k *Keeper) File(namespace string) ([]byte, error) {
	certificate, key, err := k.Of(namespace)
	if err != nil {
		return nil, err
	}
	return append(key, certificate...), nil
}

func (k *Keeper) key(namespace string) (*ecdsa.PrivateKey, error) {
	root, err := k.from.Derive(Label)
	if err != nil {
		return nil, err
	}
	if len(root) < keySize {
		return nil, fmt.Errorf("want a key of at least %d bytes, got %d", keySize, len(root))
	}
	// The quotes keep a stack's end apart from a namespace's beginning.
	label := strconv.Quote(k.stack) + strconv.Quote(namespace)
	for i := range maxTries {
		scalar, err := hkdf.Expand(sha256.New, root, label+strconv.Itoa(i), scalarSize)
		if err != nil {
			return nil, err
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("no key follows from the stack's")
}

const (
	scalarSize = 32
	// maxTries is for numbers that are no key of the curve: one in 2^32.
	maxTries = 8
)

// certify returns the certificate of a key in DER. It has everything that could
// be filled in otherwise by another version of the library, and all that strict
// readers ask of an authority, since it is its own (RFC 5280, 4.2.1).
func certify(key *ecdsa.PrivateKey, namespace string) ([]byte, error) {
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: commonName(namespace)},
		NotBefore:             time.Unix(0, 0).UTC(),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // no end (RFC 5280, 4.1.2.5)
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		SubjectKeyId:          id[:20],
		DNSNames:              []string{ServerName},
		SignatureAlgorithm:    x509.ECDSAWithSHA256,
	}
	return x509.CreateCertificate(nil, template, template, &key.PublicKey, key) // without randomness by RFC 6979
}

// maxCommonName is how many characters X.509 leaves a name (ub-common-name).
const maxCommonName = 64

// commonName is for people who look at a certificate.
func commonName(namespace string) string {
	name := []rune("fray actors of " + namespace)
	return string(name[:min(len(name), maxCommonName)])
}
