package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// digestVersion goes into every digest. Raise it when the computation changes:
// digests of different versions are never compared, the specs behind them are.
const digestVersion = 1

// Digest is a versioned, canonical hash of a spec: "v1:<hex sha256>".
type Digest string

// Version is the part before the colon.
func (d Digest) Version() string {
	v, _, _ := strings.Cut(string(d), ":")
	return v
}

// Short is the first 12 hex digits, for names and labels.
func (d Digest) Short() string {
	_, sum, _ := strings.Cut(string(d), ":")
	return sum[:min(12, len(sum))]
}

// DigestOf hashes a spec: SHA-256 of its JSON, which is canonical because specs
// hold only structs (fields in source order), sorted slices and maps (keys
// sorted by encoding/json). What a job is has no part in its Sensitive. A secret
// in clear is an error.
func DigestOf(spec any) (Digest, error) {
	switch j := spec.(type) {
	case *Job:
		spec = j.withoutSensitive()
	case Job:
		spec = j.withoutSensitive()
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("digest of %T: %w", spec, err)
	}
	sum := sha256.Sum256(data)
	return Digest(fmt.Sprintf("v%d:%s", digestVersion, hex.EncodeToString(sum[:]))), nil
}
