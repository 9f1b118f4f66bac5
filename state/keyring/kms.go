package keyring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// KMS is a key of a service that encrypts and decrypts with it, a few hundred
// bytes at a time, and does not give it away. What Decrypt returns is what was
// encrypted with the same key, or an error with the remedy.
type KMS interface {
	Encrypt(ctx context.Context, plaintext []byte) ([]byte, error)
	Decrypt(ctx context.Context, ciphertext []byte) ([]byte, error)
}

// Schemes of KMS keys' names.
const (
	SchemeFile   = "file"    // file:///path/to/key, opened by this package
	SchemeGoogle = "gcp-kms" // gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K
)

// OpenKMS returns the service behind a key's full name, scheme included.
type OpenKMS func(ctx context.Context, key string) (KMS, error)

// Openers are the services that this program can reach, by scheme. SchemeFile
// need not be among them.
type Openers map[string]OpenKMS

func (o Openers) open(ctx context.Context, key string) (KMS, error) {
	scheme, err := parseKMSKey(key)
	if err != nil {
		return nil, err
	}
	if open, ok := o[scheme]; ok {
		return open(ctx, fullKMSKey(key))
	}
	if scheme == SchemeFile {
		return OpenFileKMS(ctx, key)
	}
	known := append(slices.Collect(maps.Keys(o)), SchemeFile)
	slices.Sort(known)
	return nil, fmt.Errorf("this program cannot reach KMS keys of %s://, only of %s", scheme, strings.Join(known, "://, ")+"://")
}

// fullKMSKey adds the scheme to the bare name of a Google Cloud key.
func fullKMSKey(key string) string {
	key = strings.TrimSpace(key)
	if strings.HasPrefix(key, "projects/") {
		return SchemeGoogle + "://" + key
	}
	return key
}

const wantGoogleKey = "want gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K"

// parseKMSKey returns the scheme of a key's name that is fit to be one.
func parseKMSKey(key string) (string, error) {
	if err := checkText(key); err != nil {
		return "", fmt.Errorf("KMS key %w", err)
	}
	scheme, rest, ok := strings.Cut(fullKMSKey(key), "://")
	if !ok {
		return "", fmt.Errorf("KMS key %q: %s, or file:///path/to/key", key, wantGoogleKey)
	}
	var err error
	switch scheme {
	case SchemeFile:
		if !filepath.IsAbs(rest) {
			err = errors.New("the path must be absolute, with three slashes: file:///path/to/key")
		}
	case SchemeGoogle:
		err = checkGoogleKey(rest)
	}
	if err != nil {
		return "", fmt.Errorf("KMS key %q: %w", key, err)
	}
	return scheme, nil
}

func checkGoogleKey(name string) error {
	if bare, _, ok := strings.Cut(name, "/cryptoKeyVersions/"); ok {
		return fmt.Errorf("this names one version of a key, and keys rotate: write %s://%s", SchemeGoogle, bare)
	}
	parts := strings.Split(name, "/")
	for i, name := range []string{"projects", "locations", "keyRings", "cryptoKeys"} {
		if len(parts) != 8 || parts[2*i] != name || parts[2*i+1] == "" {
			return errors.New(wantGoogleKey)
		}
	}
	return nil
}
