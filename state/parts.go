package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// parts are the members of an object.
type parts map[string]jsontext.Value

// splitObject returns the members of an object. They point into raw.
func splitObject(raw []byte) (parts, error) {
	// Names within the members are compared when these are read.
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	begin, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if begin.Kind() != '{' {
		return nil, fmt.Errorf("it is no JSON object, but %s", begin)
	}
	members := parts{}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		if _, ok := members[name]; ok {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		members[name] = raw[end-len(value) : end]
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	switch _, err := dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return members, nil
	case err != nil:
		return nil, err
	default:
		return nil, errors.New("there is something after its end")
	}
}

// firstName returns the name of an object's first member, "" where there is none.
func firstName(raw []byte) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if begin, err := dec.ReadToken(); err != nil || begin.Kind() != '{' {
		return ""
	}
	name, err := dec.ReadToken()
	if err != nil || name.Kind() != '"' {
		return ""
	}
	return name.String()
}

// without returns the other members.
func (p parts) without(names ...string) parts {
	others := maps.Clone(p)
	for _, name := range names {
		delete(others, name)
	}
	return others
}

// object puts the members together again.
func (p parts) object() []byte {
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(p)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendQuote(out, name)
		out = append(append(out, ':'), p[name]...)
	}
	return append(out, '}')
}
