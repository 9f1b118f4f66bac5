package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a key, in bytes: of Cloud Storage and of file names.
const (
	maxKey  = 1024
	maxPart = 255
)

// CheckKey returns why a Store must refuse a key, or nil. Keys are relative
// paths: parts between slashes that are not empty and do not begin with a dot
// (so that none climbs out of a directory, and stores may keep hidden files).
// A key must not be a directory of another one: "a" and "a/b" exclude each other.
func CheckKey(key string) error {
	if err := checkParts(strings.Split(key, "/")); err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	if len(key) > maxKey {
		return fmt.Errorf("key %.40q…: longer than %d bytes", key, maxKey)
	}
	return nil
}

// CheckPrefix returns why a Store must refuse to list a prefix, or nil. A
// prefix may end anywhere in a key, so its last part may be cut off or empty.
func CheckPrefix(prefix string) error {
	parts := strings.Split(prefix, "/")
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	if err := checkParts(parts); err != nil {
		return fmt.Errorf("prefix %q: %w", prefix, err)
	}
	return nil
}

// DisjointPrefixes returns prefixes sorted and without those that begin with
// another one, and so name nothing more; or why a Store must refuse them.
func DisjointPrefixes(prefixes []string) ([]string, error) {
	var disjoint []string
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if err := CheckPrefix(p); err != nil {
			return nil, err
		}
		// What begins with p follows it at once in the order.
		if n := len(disjoint); n == 0 || !strings.HasPrefix(p, disjoint[n-1]) {
			disjoint = append(disjoint, p)
		}
	}
	return disjoint, nil
}

func checkParts(parts []string) error {
	for _, p := range parts {
		switch {
		case p == "":
			return errors.New("a part between slashes is empty")
		case p[0] == '.':
			return fmt.Errorf("the part %q begins with a dot", p)
		case len(p) > maxPart:
			return fmt.Errorf("the part %.40q… is longer than %d bytes", p, maxPart)
		case !utf8.ValidString(p), strings.ContainsFunc(p, unicode.IsControl):
			return fmt.Errorf("the part %q has control characters or is not UTF-8", p)
		}
	}
	return nil
}

// longPart is the length from which a name is shortened to fit into a part.
const longPart = 200

// keyPart turns a name into one part of a key: slashes are escaped, and a long
// name is cut and made unique by a hash.
func keyPart(name string) string {
	escaped := strings.NewReplacer("%", "%25", "/", "%2F").Replace(name)
	if len(escaped) <= longPart {
		return escaped
	}
	sum := sha256.Sum256([]byte(name))
	head := strings.ToValidUTF8(escaped[:longPart-40], "")
	return head + "~" + hex.EncodeToString(sum[:16])
}
