package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/checksum"
)

// ErrDamaged reports that an object is not what was written: nothing of it is used.
var ErrDamaged = errors.New("it is damaged")

// ErrNewer reports that an object is whole, and that a newer fray put something
// into it which this one does not know.
var ErrNewer = errors.New("it was written by a newer fray")

// Encode writes an object of the store as JSON that ends with a checksum.
func Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return checksum.Append(data)
}

// EncodeIndented is Encode for objects that people read.
func EncodeIndented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return checksum.Append(data)
}

// DecodeAssignment reads an assignment. One with anything in it that is not
// known here is rejected: its agent would run something else than was meant.
func DecodeAssignment(data []byte) (state.Assignment, error) {
	var a state.Assignment
	whole, err := decode(data, &a, strict)
	switch {
	case err == nil:
		return a, nil
	case whole:
		return state.Assignment{}, fmt.Errorf("%w (%w)", ErrNewer, err)
	default:
		return state.Assignment{}, damaged(err)
	}
}

// DecodeReport reads a host's report.
func DecodeReport(data []byte) (state.HostReport, error) {
	object, standing := checksum.Cut(data)
	if standing == checksum.Wrong {
		return state.HostReport{}, damaged(errChecksum)
	}
	// Each heartbeat of each host is read here: this reader takes a quarter of the time
	// that the one of other objects takes.
	var r state.HostReport
	options := jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsonv2.RejectUnknownMembers(standing != checksum.Valid))
	if err := jsonv2.Unmarshal(object, &r, options); err != nil {
		return state.HostReport{}, damaged(err)
	}
	return r, nil
}

// Decode reads what Encode wrote. One with another checksum than its content's
// is an ErrDamaged. One without, of an older fray, must have no members that are
// not known; in one with a checksum these are a newer fray's, and passed over.
func Decode(data []byte, v any) error {
	if _, err := decode(data, v, lenient); err != nil {
		return damaged(err)
	}
	return nil
}

// unknown is the treatment of unknown members in an object that is whole.
type unknown uint8

const (
	strict unknown = iota
	lenient
)

var errChecksum = errors.New("its checksum is not that of its content")

// decode reports whether the object is what its checksum is of.
func decode(data []byte, v any, members unknown) (whole bool, err error) {
	object, standing := checksum.Cut(data)
	if standing == checksum.Wrong {
		return false, errChecksum
	}
	whole = standing == checksum.Valid
	d := json.NewDecoder(bytes.NewReader(object))
	if !whole || members == strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return whole, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return whole, errors.New("there is something after its end")
	}
	return whole, nil
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }
