package store

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/state"
)

const (
	keyFileVersion = "fray-key-v1:"
	maxKeyFile     = 4096 // bytes, far more than a key needs
)

// NewKey returns a random key that is kept nowhere.
func NewKey() (*state.Key, error) { return state.NewKey(NewSecret()) }

// NewSecret returns the state.KeySize random bytes that a key is made of.
func NewSecret() []byte {
	secret := make([]byte, state.KeySize)
	rand.Read(secret) // never fails
	return secret
}

// LoadKey reads a stack's key from a file that nobody but its owner may read.
// The error is an fs.ErrNotExist if there is none.
func LoadKey(path string) (*state.Key, error) {
	secret, err := LoadSecret(path)
	if err != nil {
		return nil, err
	}
	return state.NewKey(secret)
}

// LoadSecret is LoadKey for the state.KeySize bytes that a key is made of.
func LoadSecret(path string) ([]byte, error) {
	secret, err := readSecret(path)
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	return secret, nil
}

// CreateSecret writes a new key, or the one that is given, and returns the one
// that is in the file then: all who do so at once get the same key.
func CreateSecret(path string, secret []byte) ([]byte, error) {
	// One that is there needs no room on the disk.
	if found, err := LoadSecret(path); !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	if secret == nil {
		secret = NewSecret()
	}
	if err := createSecret(path, secret); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create key: %w", err)
	}
	return LoadSecret(path)
}

func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, keyError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fileError("open", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: the key must be a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("open %s: others may read this key (its mode is %#o); run: chmod 600 %s", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fileError("read", path, err)
	}
	encoded, ok := strings.CutPrefix(strings.TrimSpace(string(data)), keyFileVersion)
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(secret) != state.KeySize {
		return nil, fmt.Errorf("read %s: it holds no key, or a damaged one, and was left as it is; put back a copy of it "+
			"(without one, move it away: a new key is made, and every secret counts as changed)", path)
	}
	return secret, nil
}

// keyError keeps an fs.ErrNotExist as it is: what to do depends on who asks.
func keyError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	return fileError("open", path, err)
}

// createSecret writes a new key, unless there is one: the file appears with
// all its content, by a link, which fails where a name is taken.
func createSecret(path string, secret []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return fileError("make directory", folder, err)
	}
	tmp, err := os.CreateTemp(folder, ".key-*") // only its owner may read it
	if err != nil {
		return fileError("write", path, err)
	}
	defer func() {
		tmp.Close()
		_ = os.Remove(tmp.Name())
	}()
	line := keyFileVersion + base64.StdEncoding.EncodeToString(secret) + "\n"
	if _, err := tmp.WriteString(line); err != nil {
		return fileError("write", path, err)
	}
	if err := tmp.Sync(); err != nil {
		return fileError("sync", path, err)
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		return fileError("create", path, err)
	}
	if err := syncFolder(folder); err != nil {
		return fileError("sync", folder, err)
	}
	return nil
}
