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

// part is a member of an object, or an element of an array, which has no name.
type part struct {
	name  string
	value jsontext.Value
}

// label names the i-th part in messages.
func (p part) label(i int) string {
	if p.name == "" {
		return fmt.Sprintf("number %d", i)
	}
	return strconv.Quote(p.name)
}

// parts are the members of an object.
type parts map[string]jsontext.Value

// split returns the parts of an object ('{') or an array ('[') in order. They
// point into raw, which may be empty for one that was left out.
func split(raw []byte, kind jsontext.Kind) ([]part, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), splitOptions())
	begin, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if begin.Kind() != kind {
		name := map[jsontext.Kind]string{'{': "object", '[': "array"}[kind]
		return nil, fmt.Errorf("it is no JSON %s, but %s", name, begin)
	}
	found := make([]part, 0, len(raw)/usualSize+8)
	for next := dec.PeekKind(); next != '}' && next != ']'; next = dec.PeekKind() {
		var p part
		if kind == '{' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			p.name = name.String()
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		p.value = raw[end-len(value) : end]
		found = append(found, p)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	switch _, err := dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return found, nil
	case err != nil:
		return nil, err
	default:
		return nil, errors.New("there is something after its end")
	}
}

// splitObject returns the members of an object.
func splitObject(raw []byte) (parts, error) {
	found, err := split(raw, '{')
	if err != nil {
		return nil, err
	}
	members := make(parts, len(found))
	for _, p := range found {
		if _, ok := members[p.name]; ok {
			return nil, fmt.Errorf("%q is there twice", p.name)
		}
		members[p.name] = p.value
	}
	return members, nil
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
