package dial

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// certificateLife is the validity that a certificate states. No client checks
// it: a process makes a new one whenever it starts.
const certificateLife = 20 * 365 * 24 * time.Hour

// NewCertificate makes a key and a certificate for this process.
func NewCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "fray"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"fray"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Fingerprint is the SHA-256 of a certificate, in hex: what goes into the store.
func Fingerprint(certificate tls.Certificate) string {
	if len(certificate.Certificate) == 0 {
		return ""
	}
	return fingerprintOf(certificate.Certificate[0])
}

func fingerprintOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// ServerTLS is how a process serves under its certificate.
func ServerTLS(certificate tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}}
}

// ClientTLS accepts exactly the certificate of a fingerprint, by whatever name
// and at whatever time it is met.
func ClientTLS(fingerprint string) (*tls.Config, error) {
	if sum, err := hex.DecodeString(fingerprint); err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("certificate fingerprint %q: want the %d hex digits of a SHA-256", fingerprint, 2*sha256.Size)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// There is no authority to ask, VerifyConnection decides. That the
		// server has the certificate's key is checked regardless.
		InsecureSkipVerify: true,
		VerifyConnection:   func(c tls.ConnectionState) error { return verify(c, fingerprint) },
	}, nil
}

func verify(c tls.ConnectionState, want string) error {
	if len(c.PeerCertificates) == 0 {
		return errors.New("the server showed no certificate")
	}
	got := fingerprintOf(c.PeerCertificates[0].Raw)
	if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
		return fmt.Errorf("the server's certificate is %.16s…, and the store has %.16s…: it is another process", got, want)
	}
	return nil
}
