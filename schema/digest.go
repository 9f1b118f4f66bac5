package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
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
	return digestOf(data), nil
}

func digestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	text := append(make([]byte, 0, 3+2*sha256.Size), 'v')
	text = append(strconv.AppendInt(text, digestVersion, 10), ':')
	return Digest(hex.AppendEncode(text, sum[:]))
}

// Digester returns the digests of jobs, each as [DigestOf] does. What a job has in common with
// the one before, as instances of one block do, it does not encode again. The zero Digester
// is ready to use.
type Digester struct {
	last *Job
	rest []byte // what follows the command in the encoding of last
	text []byte // of the last encoding, to be used again
}

// Of is the digest of a job.
func (d *Digester) Of(j *Job) (Digest, error) {
	head, ok := appendHead(d.text[:0], j)
	if !ok {
		return DigestOf(j)
	}
	if d.last == nil || !AlikeJobs(d.last, j) {
		data, err := json.Marshal(j.withoutSensitive())
		rest, found := bytes.CutPrefix(data, head)
		if err != nil || !found {
			return DigestOf(j)
		}
		d.last, d.rest = j, rest
	}
	d.text = append(head, d.rest...)
	return digestOf(d.text), nil
}

// appendHead appends the encoding of a job up to the end of its command. It reports false for
// a command that cannot be encoded.
func appendHead(b []byte, j *Job) ([]byte, bool) {
	b = appendString(append(b, `{"addr":`...), j.Addr.String())
	b = appendString(append(b, `,"namespace":`...), j.Namespace)
	b = append(b, `,"command":`...)
	if j.Command == nil {
		return append(b, "null"...), true
	}
	b = append(b, '[')
	for i, word := range j.Command {
		if i > 0 {
			b = append(b, ',')
		}
		if word.form == textPlain {
			b = appendString(b, word.value)
			continue
		}
		data, err := json.Marshal(word)
		if err != nil {
			return b, false
		}
		b = append(b, data...)
	}
	return append(b, ']'), true
}

// appendString appends a string as encoding/json writes it.
func appendString(b []byte, s string) []byte {
	start := len(b)
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~' || c == '<' || c == '>' || c == '&':
			data, _ := json.Marshal(s) // a string can always be encoded
			return append(b[:start], data...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
