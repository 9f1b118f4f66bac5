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

// Secrets are what a stack's key is made of, KeySize random bytes each: the one
// that seals, and those from before, which are only there while what they sealed
// is sealed anew.
type Secrets struct {
	Current []byte
	Former  [][]byte
}

// String keeps the secrets out of messages.
func (s Secrets) String() string { return fmt.Sprintf("(stack's key, %d former ones)", len(s.Former)) }

// GoString keeps the secrets out of messages.
func (s Secrets) GoString() string { return s.String() }

// Key seals the secrets of one stack with AES-256-GCM. A sealed secret is
// "v1:" and the base64 of nonce and ciphertext.
//
// The nonce is a MAC of the secret, so that sealing is deterministic: a plan
// can tell whether a secret changed without the key's holder revealing it. The
// price is that every reader of the state sees which secrets are equal to which,
// now or earlier, and how long they are; not what they are.
type Key struct {
	current *cipherKey
	former  []*cipherKey
}

// cipherKey is what one secret makes.
type cipherKey struct {
	aead   cipher.AEAD
	nonces []byte // key of the MAC that makes nonces
}

var (
	_ schema.Sealer   = (*Key)(nil)
	_ schema.Resealer = (*Key)(nil)
)

// NewKey returns the Key of KeySize secret, random bytes.
func NewKey(secret []byte) (*Key, error) { return KeyOf(Secrets{Current: secret}) }

// KeyOf returns the Key that seals with the current secret, and opens what it or a
// former one sealed.
func KeyOf(s Secrets) (*Key, error) {
	current, err := newCipherKey(s.Current)
	if err != nil {
		return nil, err
	}
	k := &Key{current: current}
	for _, secret := range s.Former {
		former, err := newCipherKey(secret)
		if err != nil {
			return nil, err
		}
		k.former = append(k.former, former)
	}
	return k, nil
}

func newCipherKey(secret []byte) (*cipherKey, error) {
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
	return &cipherKey{aead: aead, nonces: nonces}, nil
}

// Seal encrypts a secret; equal secrets give equal results.
func (k *Key) Seal(secret string) (string, error) {
	nonce := k.current.nonce(secret)
	return sealVersion + base64.StdEncoding.EncodeToString(k.current.aead.Seal(nonce, nonce, []byte(secret), nil)), nil
}

// ErrOtherKey says that a secret was sealed with another key, or is damaged.
var ErrOtherKey = errors.New("open secret: it was sealed with another key than this one, or is damaged")

// Open decrypts what Seal returned.
func (k *Key) Open(sealed string) (string, error) {
	encoded, ok := strings.CutPrefix(sealed, sealVersion)
	if !ok {
		return "", errors.New("open secret: this version of fray does not know how it was sealed; use a newer one")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) < k.current.aead.NonceSize() {
		return "", errors.New("open secret: the sealed value is damaged")
	}
	if secret, opened := k.current.open(data); opened {
		return secret, nil
	}
	for _, former := range k.former {
		if secret, opened := former.open(data); opened {
			return secret, nil
		}
	}
	return "", ErrOtherKey
}

// Reseal seals with the current key what any of the keys sealed.
func (k *Key) Reseal(sealed string) (string, error) {
	secret, err := k.Open(sealed)
	if err != nil {
		return "", err
	}
	return k.Seal(secret)
}

// open decrypts nonce and ciphertext, and reports whether this key sealed them.
func (k *cipherKey) open(data []byte) (string, bool) {
	nonce, content := data[:k.aead.NonceSize()], data[k.aead.NonceSize():]
	secret, err := k.aead.Open(nil, nonce, content, nil)
	if err != nil || !hmac.Equal(nonce, k.nonce(string(secret))) {
		return "", false
	}
	return string(secret), true
}

func (k *cipherKey) nonce(secret string) []byte {
	mac := hmac.New(sha256.New, k.nonces)
	mac.Write([]byte(secret))
	return mac.Sum(nil)[:k.aead.NonceSize()]
}

// String keeps the key out of messages.
func (k *Key) String() string { return "(stack's key)" }

// GoString keeps the key out of messages.
func (k *Key) GoString() string { return k.String() }
