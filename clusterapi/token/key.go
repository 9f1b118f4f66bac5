package token

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Role is where in the store a key is published, which is what it may sign: a
// closed set.
type Role string

// The roles.
const (
	// RoleLeader is the key in lease.json, of who leads: it signs the tokens of
	// the controller.
	RoleLeader Role = "leader"
	// RoleCommand is a key below signers/, of a command that a person runs: it
	// signs that user's tokens for a short while.
	RoleCommand Role = "command"
	// RoleHost is the key in a host's report: it signs the host's tokens and
	// those of the jobs that run there.
	RoleHost Role = "host"
)

// ID is the name of a key and the place where it is published.
type ID struct {
	Role Role
	// Slice and Host are those of a host's key.
	Slice string
	Host  int
	Sum   string // see Sum
}

// sumSize is how many bytes of a key's hash name it.
const sumSize = 16

// Sum is what names a public key among others: the beginning of its SHA-256, in hex.
func Sum(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:sumSize])
}

// String is how tokens name the key.
func (id ID) String() string {
	if id.Role == RoleHost {
		return strings.Join([]string{string(RoleHost), id.Slice, strconv.Itoa(id.Host), id.Sum}, ".")
	}
	return string(id.Role) + "." + id.Sum
}

// ParseID reads what String writes, and nothing else: the parts become the names of
// objects.
func ParseID(text string) (ID, error) {
	parts := strings.Split(text, ".")
	id := ID{Role: Role(parts[0]), Sum: parts[len(parts)-1]}
	ok := false
	switch id.Role {
	case RoleLeader, RoleCommand:
		ok = len(parts) == 2
	case RoleHost:
		var err error
		if ok = len(parts) == 4 && isSliceName(parts[1]); ok {
			id.Slice = parts[1]
			id.Host, err = strconv.Atoi(parts[2])
			ok = err == nil && id.Host >= 0
		}
	}
	raw, err := hex.DecodeString(id.Sum)
	if !ok || err != nil || len(raw) != sumSize || hex.EncodeToString(raw) != id.Sum || id.String() != text {
		return ID{}, fmt.Errorf("%.80q names no signing key", text)
	}
	return id, nil
}

func isSliceName(name string) bool {
	return name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// CommandLife is how long the key of a command holds at most.
const CommandLife = 20 * time.Minute

// maxSkew is how far the clock of a command may be ahead of the verifier's.
const maxSkew = time.Minute

// Key is a published public key.
type Key struct {
	ID     ID
	Public ed25519.PublicKey
	// User and Expires are those of a command's key: for whom it signs, and until
	// when.
	User    string
	Expires time.Time
}

// may returns why the key must not have signed claims, or nil.
func (k Key) may(c Claims) error {
	ok := false
	switch k.ID.Role {
	case RoleLeader:
		ok = c.Subject == SubjectController
	case RoleCommand:
		ok = c.Subject == SubjectUser
	case RoleHost:
		ok = c.Subject == SubjectJob || c.Subject == SubjectHost || c.Subject == SubjectRelayed
	}
	switch {
	case !ok:
		return fmt.Errorf("%w: it is the token of a %s, and the key that of a %s", ErrRole, c.Subject, k.ID.Role)
	case k.ID.Role == RoleCommand && c.User != k.User:
		return fmt.Errorf("%w: it is for user %.40q, and the key signs for %q", ErrRole, c.User, k.User)
	case k.ID.Role == RoleCommand && c.Expires.After(k.Expires):
		return fmt.Errorf("%w: it holds longer than the key", ErrRole)
	}
	return nil
}

// valid returns why a key must not be used at a time, or nil. A command's key that
// claims to hold for longer than any does is not used at all: who wrote it may
// not be allowed to write any more.
func (k Key) valid(now time.Time) error {
	switch {
	case k.ID.Role != RoleCommand:
		return nil
	case !now.Before(k.Expires):
		return fmt.Errorf("%w: its key held until %s", ErrExpired, k.Expires.UTC().Format(time.RFC3339))
	case k.Expires.Sub(now) > CommandLife+maxSkew:
		return fmt.Errorf("%w: its key is to hold until %s, which is longer than %s from now (%s)", ErrRole,
			k.Expires.UTC().Format(time.RFC3339), CommandLife, now.UTC().Format(time.RFC3339))
	}
	return nil
}
