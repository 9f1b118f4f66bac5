// Package identity makes what the actors of a namespace prove to each other that
// they are of one namespace: certificates of P-256 keys, which every TLS library
// takes. A host keeps its private key to itself; who leads certifies it for a
// namespace, as an authority whose own private key is in memory only; peers accept
// what an authority of their stack has certified for their namespace.
//
// Where authorities are published and how connections use all this is not known
// here. The package has no clock and no randomness. Start with [Authority].
package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"
)

// ServerName is the name in every certificate: what a client must ask for where
// its library insists on checking one.
const ServerName = "fray-actors"

// Authority certifies the hosts of one stack. It may be used concurrently.
type Authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	stack       string
}

// NewAuthority returns the authority of a key for the stack of a mark.
func NewAuthority(key *ecdsa.PrivateKey, stack string) (*Authority, error) {
	if stack == "" {
		return nil, errors.New("make an actor authority: the stack has no mark yet; run fray apply once")
	}
	template := base(&key.PublicKey, "fray authority of "+stack)
	template.IsCA, template.MaxPathLenZero, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(nil, template, template, &key.PublicKey, key) // without randomness by RFC 6979
	if err != nil {
		return nil, fmt.Errorf("make an actor authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make an actor authority: %w", err)
	}
	return &Authority{key: key, certificate: certificate, stack: stack}, nil
}

// Certificate is the authority's own, in DER: what peers trust.
func (a *Authority) Certificate() []byte { return a.certificate.Raw }

// Issue certifies a host's public key (PKIX, DER) for a namespace, in DER.
func (a *Authority) Issue(public []byte, namespace string) ([]byte, error) {
	if namespace == "" {
		return nil, errors.New("certify a host's actors: the namespace has no name")
	}
	parsed, err := x509.ParsePKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("certify a host's actors: %w", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("certify a host's actors: its key is a %T; want one of P-256", parsed)
	}
	template := base(key, "fray actors of "+namespace)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{ServerName}
	template.URIs = []*url.URL{Space(a.stack, namespace)}
	certificate, err := x509.CreateCertificate(nil, template, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("certify a host's actors: %w", err)
	}
	return certificate, nil
}

// Space is how a certificate names a namespace of a stack: peers compare it.
func Space(stack, namespace string) *url.URL {
	return &url.URL{Scheme: "fray", Host: stack, Path: "/" + namespace}
}

// base has what both kinds of certificates share, and all fields that another
// version of the library could fill in otherwise. Certificates have no end (RFC
// 5280, 4.1.2.5): an authority counts for as long as it is published, whatever the
// clocks of hosts show.
func base(key *ecdsa.PublicKey, name string) *x509.Certificate {
	public, _ := key.Bytes() // of a key of the curve, which it is
	id := sha256.Sum256(public)
	serial := sha256.Sum256(append([]byte(name), public...))
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:16]),
		Subject:      pkix.Name{CommonName: clip(name), SerialNumber: hex.EncodeToString(id[:8])},
		NotBefore:    time.Unix(0, 0).UTC(), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		BasicConstraintsValid: true, SubjectKeyId: id[:20], SignatureAlgorithm: x509.ECDSAWithSHA256,
	}
}

// maxCommonName is how many characters X.509 leaves a name (ub-common-name). It is
// for people who read a certificate.
const maxCommonName = 64

func clip(name string) string {
	runes := []rune(name)
	return string(runes[:min(len(runes), maxCommonName)])
}

// IssuedBy reports whether an authority has issued a certificate, both in DER.
func IssuedBy(certificate, authority []byte) bool {
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return false
	}
	root, err := x509.ParseCertificate(authority)
	return err == nil && bytes.Equal(leaf.AuthorityKeyId, root.SubjectKeyId) && leaf.CheckSignatureFrom(root) == nil
}

// File is what FRAY_ACTOR_IDENTITY names: a private key (PKCS #8), its certificate,
// and the authorities whose certificates are accepted, all in DER, as one PEM file
// in that order.
func File(key, certificate []byte, authorities [][]byte) []byte {
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for _, der := range append([][]byte{certificate}, authorities...) {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return text
}

// ParseFile reads key and certificate of what File has written.
func ParseFile(text []byte) (key, certificate []byte, err error) {
	private, rest := pem.Decode(text)
	leaf, _ := pem.Decode(rest)
	if private == nil || leaf == nil || leaf.Type != "CERTIFICATE" {
		return nil, nil, errors.New("parse the actor identity: it has no key and certificate")
	}
	return private.Bytes, leaf.Bytes, nil
}
