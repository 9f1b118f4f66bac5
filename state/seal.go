package state

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// KeySize is the length of a stack's key in bytes.
const KeySize = 32

const sealVersion = "v1:"

// Key seals the secrets of one stack with AES-256-GCM. A sealed secret is
// "v1:" and the base64 of nonce and ciphertext.
//
// The nonce is a MAC of the secret, so that sealing is deterministic: a plan
// can tell whether a secret changed without the key's holder revealing it. The
// price is that whoever reads the state sees which secrets are equal to which,
// now or earlier, and how long they are; not what they are.
type Key struct {
	aead   cipher.AEAD
	nonces []byte // key of the MAC that makes nonces
}

var _ schema.Sealer = (*Key)(nil)

// NewKey returns the Key of KeySize secret, random bytes.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) != KeySize {
		return nil, fmt.Errorf("make key: want %d bytes, got %d", KeySize, len(secret))
	}
	// One key for each purpose, neither of which tells anything of the other.
	content, err := hkdf.Key(sha256.New, secret, nil, "fray seal v1 content", KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	nonces, err := hkdf.Key(sha256.New, secret, nil, "fray seal v1 nonces", KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	block, err := aes.NewCipher(content)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return &Key{aead: aead, nonces: nonces}, nil
}

// Seal encrypts a secret; equal secrets give equal results.
func (k *Key) Seal(secret string) (string, error) {
	nonce := k.nonce(secret)
	return sealVersion + base64.StdEncoding.EncodeToString(k.aead.Seal(nonce, nonce, []byte(secret), nil)), nil
}

// Open decrypts what Seal returned.
func (k *Key) Open(sealed string) (string, error) {
	encoded, ok := strings.CutPrefix(sealed, sealVersion)
	if !ok {
		return "", errors.New("open secret: this version of fray does not know how it was sealed; use a newer one")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) < k.aead.NonceSize() {
		return "", errors.New("open secret: the sealed value is damaged")
	}
	nonce, content := data[:k.aead.NonceSize()], data[k.aead.NonceSize():]
	secret, err := k.aead.Open(nil, nonce, content, nil)
	if err != nil || !hmac.Equal(nonce, k.nonce(string(secret))) {
		return "", errors.New("open secret: it was sealed with another key than this one, or is damaged")
	}
	return string(secret), nil
}

func (k *Key) nonce(secret string) []byte {
	mac := hmac.New(sha256.New, k.nonces)
	mac.Write([]byte(secret))
	return mac.Sum(nil)[:k.aead.NonceSize()]
}

// String keeps the key out of messages.
func (k *Key) String() string { return "(stack's key)" }

// GoString keeps the key out of messages.
func (k *Key) GoString() string { return k.String() }
