// Package checksum ends a JSON object with a member that holds the SHA-256 of
// everything before it, so that a reader notices any byte that changed since.
//
// SHA-256 rather than a CRC: processors compute it at over a gigabyte a second,
// which is a hundredth of what encoding the same document takes, it is the hash
// of all other content here, and no two of any number of damaged documents have
// the same. It proves nothing about who wrote a document.
//
// Start with [Append] and [Check].
package checksum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Member is the name of the member, the last one of its object.
const Member = "checksum"

const (
	algorithm = "sha256:"
	// MaxSize is the most that Append adds, in bytes, but for the indentation.
	MaxSize = len(`,"": ""}`) + len(Member) + len(algorithm) + 2*sha256.Size + 4
)

// Standing is how a document stands to its checksum.
type Standing uint8

// The standings.
const (
	Missing Standing = iota // there is none at its end
	Valid
	Wrong // the document, or its checksum, was changed
)

// Append adds the checksum to a JSON object that has members, in the
// indentation that it has; it may write into the capacity behind it.
func Append(object []byte) ([]byte, error) {
	body, found := bytes.CutSuffix(bytes.TrimRight(object, " \t\r\n"), []byte("}"))
	body = bytes.TrimRight(body, " \t\r\n")
	if !found || len(body) < 2 || body[0] != '{' {
		return nil, errors.New("add a checksum: want a JSON object with members")
	}
	return append(body, ending(body)...), nil
}

// Check compares a document with the checksum at its end.
func Check(data []byte) Standing {
	body, found := bodyOf(data)
	switch {
	case !found:
		return Missing
	case bytes.Equal(data[len(body):], ending(body)):
		return Valid
	default:
		return Wrong
	}
}

// Cut returns the object without its checksum, and how it stood to it. An
// object without one is returned as it is.
func Cut(data []byte) ([]byte, Standing) {
	standing := Check(data)
	if standing == Missing {
		return data, standing
	}
	body, _ := bodyOf(data)
	object := make([]byte, 0, len(body)+1)
	return append(append(object, body...), '}'), standing
}

// bodyOf is what the checksum is of: all before the comma that leads to it.
func bodyOf(data []byte) (body []byte, found bool) {
	longest := MaxSize + 2*len(indentation(data))
	tail := data[max(0, len(data)-longest):]
	name := bytes.LastIndex(tail, []byte(`"`+Member+`"`))
	if name < 0 {
		return nil, false
	}
	comma := bytes.LastIndexByte(tail[:name], ',')
	if comma < 0 {
		return nil, false
	}
	return data[:len(data)-len(tail)+comma], true
}

// ending is what follows a body: the checksum and the end of the object.
func ending(body []byte) []byte {
	sum := sha256.Sum256(body)
	indent := indentation(body)
	out := append(make([]byte, 0, MaxSize+2*len(indent)), ',')
	out = append(out, indent...)
	out = append(out, `"`+Member+`":`...)
	if len(indent) > 0 {
		out = append(out, ' ')
	}
	out = append(append(out, '"'), algorithm...)
	out = hex.AppendEncode(out, sum[:])
	out = append(out, '"')
	if len(indent) > 0 {
		out = append(out, '\n')
	}
	return append(out, "}\n"...)
}

// maxIndent bounds the indentation of members, in bytes.
const maxIndent = 16

// indentation is what stands before the first member of an object: nothing, or
// a line's end and spaces.
func indentation(object []byte) []byte {
	if len(object) < 2 || object[1] != '\n' {
		return nil
	}
	end := 2
	for end < len(object) && end < maxIndent && object[end] == ' ' {
		end++
	}
	return object[1:end]
}
