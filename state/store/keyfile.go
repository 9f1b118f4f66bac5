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

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/state"
)

const (
	keyFileVersion = "fray-key-v1:"
	keyFileFormer  = "former-fray-key-v1:" // of each further line
	maxKeyFile     = 8192                  // bytes, far more than keys need
)

// NewKey returns a random key that is kept nowhere.
func NewKey() (*state.Key, error) { return state.NewKey(NewSecret()) }

// NewSecret returns the state.KeySize random bytes that a key is made of.
func NewSecret() []byte {
	secret := make([]byte, state.KeySize)
	rand.Read(secret) // never fails
	return secret
}

// LoadKey reads a stack's key from a file that only its owner may read.
// The error is an fs.ErrNotExist if there is none.
func LoadKey(path string) (*state.Key, error) {
	secrets, err := LoadSecrets(path)
	if err != nil {
		return nil, err
	}
	return state.KeyOf(secrets)
}

// LoadSecret is LoadKey for the state.KeySize bytes that the current key is made of.
func LoadSecret(path string) ([]byte, error) {
	secrets, err := LoadSecrets(path)
	return secrets.Current, err
}

// LoadSecrets is LoadSecret with the former ones.
func LoadSecrets(path string) (state.Secrets, error) {
	secrets, err := readSecrets(path)
	if err != nil {
		return state.Secrets{}, fmt.Errorf("load key: %w", err)
	}
	return secrets, nil
}

// ReplaceSecrets writes keys in place of those that a file has, or a new file.
func ReplaceSecrets(path string, secrets state.Secrets) error {
	if err := writeSecrets(path, secrets, durable.WriteFile); err != nil {
		return fmt.Errorf("replace key: %w", err)
	}
	return nil
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
	if err := writeSecrets(path, state.Secrets{Current: secret}, durable.WriteNew); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create key: %w", err)
	}
	return LoadSecret(path)
}

func readSecrets(path string) (state.Secrets, error) {
	f, err := os.Open(path)
	if err != nil {
		return state.Secrets{}, keyError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return state.Secrets{}, fileError("open", path, err)
	}
	if !info.Mode().IsRegular() {
		return state.Secrets{}, fmt.Errorf("open %s: the key must be a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return state.Secrets{}, fmt.Errorf("open %s: others may read this key (its mode is %#o); run: chmod 600 %s", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return state.Secrets{}, fileError("read", path, err)
	}
	secrets, ok := parseSecrets(string(data))
	if !ok {
		return state.Secrets{}, fmt.Errorf("read %s: it holds no key, or a damaged one, and was left as it is; put back a copy of it "+
			"(without one, move it away: a new key is made, and every secret counts as changed)", path)
	}
	return secrets, nil
}

// parseSecrets reads the current key from the first line, and former ones from those
// after it.
func parseSecrets(text string) (secrets state.Secrets, ok bool) {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		prefix := keyFileVersion
		if i > 0 {
			prefix = keyFileFormer
		}
		encoded, found := strings.CutPrefix(strings.TrimSpace(line), prefix)
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if !found || err != nil || len(secret) != state.KeySize {
			return state.Secrets{}, false
		}
		if i == 0 {
			secrets.Current = secret
		} else {
			secrets.Former = append(secrets.Former, secret)
		}
	}
	return secrets, true
}

// keyError keeps an fs.ErrNotExist as it is: what to do depends on who asks.
func keyError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	return fileError("open", path, err)
}

// writeSecrets writes keys to a file that only its owner may read, in a directory which
// it makes where there is none.
func writeSecrets(path string, secrets state.Secrets, write func(path string, data []byte, perm fs.FileMode) error) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return fileError("make directory", folder, err)
	}
	var text strings.Builder
	text.WriteString(keyFileVersion + base64.StdEncoding.EncodeToString(secrets.Current) + "\n")
	for _, former := range secrets.Former {
		text.WriteString(keyFileFormer + base64.StdEncoding.EncodeToString(former) + "\n")
	}
	if err := write(path, []byte(text.String()), fileMode); err != nil {
		return fileError("write", path, err)
	}
	return nil
}
