package keyring

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

const (
	fileKeySize    = 32   // bytes
	maxKeyFile     = 4096 // bytes, far more than a key needs
	fileKMSVersion = 1
	wantKeyFile    = "want 32 random bytes: as they are, as 64 hexadecimal digits (`openssl rand -hex 32`) " +
		"or as base64 (`openssl rand -base64 32`)"
)

// FileKMS is a KMS whose key is in a file: for one machine, for a secret that
// CI mounts, and for tests.
type FileKMS struct {
	path string
	id   []byte // tells keys apart, not secret
	aead cipher.AEAD
}

var _ KMS = (*FileKMS)(nil)

// OpenFileKMS reads the key of a name such as "file:///path/to/key": 32 bytes
// raw, in hexadecimal or in base64, in a file that only its owner may read.
func OpenFileKMS(_ context.Context, key string) (KMS, error) {
	path, ok := strings.CutPrefix(key, SchemeFile+"://")
	if !ok {
		return nil, fmt.Errorf("KMS key %q: want file:///path/to/key", key)
	}
	secret, err := readKeyFile(path)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	content, err := hkdf.Key(sha256.New, secret, nil, "fray file kms v1 content", fileKeySize)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	id, err := hkdf.Key(sha256.New, secret, nil, "fray file kms v1 id", idSize)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	aead, err := newAEAD(content)
	if err != nil {
		return nil, err
	}
	return &FileKMS{path: path, id: id, aead: aead}, nil
}

// CreateKeyFile writes a new key to a file that must not be there yet.
func CreateKeyFile(path string) error {
	secret := make([]byte, fileKeySize)
	rand.Read(secret) // never fails
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create key file: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(base64.StdEncoding.EncodeToString(secret) + "\n"); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}

// Encrypt returns a version, the id of the key, a nonce, and what AES-256-GCM
// makes of the plaintext with them.
func (k *FileKMS) Encrypt(_ context.Context, plaintext []byte) ([]byte, error) {
	head := append([]byte{fileKMSVersion}, k.id...)
	nonce := make([]byte, k.aead.NonceSize())
	rand.Read(nonce) // never fails
	return k.aead.Seal(append(bytes.Clone(head), nonce...), nonce, plaintext, head), nil
}

// Decrypt opens what Encrypt returned.
func (k *FileKMS) Decrypt(_ context.Context, ciphertext []byte) ([]byte, error) {
	headSize := 1 + idSize
	if len(ciphertext) < headSize+k.aead.NonceSize()+k.aead.Overhead() {
		return nil, fmt.Errorf("%w: the wrapped key is too short", ErrDamaged)
	}
	if ciphertext[0] != fileKMSVersion {
		return nil, fmt.Errorf("%w: key file %s did not wrap this, or a newer fray did", ErrDamaged, k.path)
	}
	head, rest := ciphertext[:headSize], ciphertext[headSize:]
	if id := head[1:]; !bytes.Equal(id, k.id) {
		return nil, fmt.Errorf("key file %s holds another key than the one that wrapped this (%x, not %x): put that one there",
			k.path, k.id, id)
	}
	nonce, content := rest[:k.aead.NonceSize()], rest[k.aead.NonceSize():]
	plaintext, err := k.aead.Open(nil, nonce, content, head)
	if err != nil {
		return nil, fmt.Errorf("%w: the wrapped key was changed", ErrDamaged)
	}
	return plaintext, nil
}

// String keeps the key out of messages.
func (k FileKMS) String() string { return SchemeFile + "://" + k.path }

// GoString keeps the key out of messages.
func (k FileKMS) GoString() string { return k.String() }

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: put the key there, or make one and keep it safe "+
			"(`(umask 077; openssl rand -base64 32 > FILE)`)", fs.ErrNotExist)
	}
	if err != nil {
		return nil, pathless(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, pathless(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may read it (%v), so it is no secret: `chmod 600` it", info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, pathless(err)
	}
	return decodeKeyFile(data)
}

func decodeKeyFile(data []byte) ([]byte, error) {
	text := strings.TrimSpace(string(data))
	digits, hexErr := hex.DecodeString(text)
	switch {
	case hexErr == nil && len(digits) == fileKeySize:
		return digits, nil
	case hexErr == nil && len(digits) > 0: // also 32 digits, which are 32 bytes but hardly random ones
		return nil, fmt.Errorf("it holds %d bytes in hexadecimal: %s", len(digits), wantKeyFile)
	case len(data) == fileKeySize:
		return data, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err == nil && len(decoded) == fileKeySize:
		return decoded, nil
	case err == nil && len(decoded) > 0:
		return nil, fmt.Errorf("it holds %d bytes in base64: %s", len(decoded), wantKeyFile)
	}
	return nil, fmt.Errorf("it holds %d bytes, in no form that is known: %s", len(data), wantKeyFile)
}

// pathless is an error of the file system without the path, which the caller adds.
func pathless(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	return aead, nil
}
