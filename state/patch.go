package state

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// A patch is what a value has that another of its type has not, as a JSON
// Merge Patch (RFC 7396): members replace what is there, objects merge, null
// removes. Values with a JSON form of their own (addresses, texts) are
// replaced whole.

// shape is how a struct is patched.
type shape struct {
	fields []member
	byName map[string]*member
}

// member is a field of a struct as a member of its object.
type member struct {
	name      string
	index     int // of the field
	omitempty bool
	merging   merging
	inner     *shape // of the struct, for mergeStruct and mergePointer
}

// merging is how the patch of a value acts on what is there.
type merging uint8

const (
	replace      merging = iota
	mergeStruct          // a struct
	mergePointer         // a pointer to a struct
	mergeMap             // a map from strings
)

func shapeOf[T any]() (*shape, error) {
	s, err := structShape(reflect.TypeFor[T]())
	if err == nil && s.byName[likeName] != nil {
		err = fmt.Errorf("a field of %s has the name %q, which stands for something else in a document", reflect.TypeFor[T](), likeName)
	}
	return s, err
}

func structShape(t reflect.Type) (*shape, error) {
	s := &shape{fields: make([]member, 0, t.NumField()), byName: make(map[string]*member, t.NumField())}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || !f.IsExported() {
			return nil, fmt.Errorf("field %s of %s has no name in JSON", f.Name, t)
		}
		m := member{name: name, index: i, omitempty: strings.Contains(options, "omit"), merging: mergingOf(f.Type)}
		var err error
		switch m.merging {
		case mergeStruct:
			m.inner, err = structShape(f.Type)
		case mergePointer:
			m.inner, err = structShape(f.Type.Elem())
		case replace, mergeMap:
		}
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, m)
		s.byName[name] = &s.fields[i]
	}
	return s, nil
}

func mergingOf(t reflect.Type) merging {
	switch {
	case hasOwnForm(t):
		return replace
	case t.Kind() == reflect.Struct:
		return mergeStruct
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !hasOwnForm(t.Elem()):
		return mergePointer
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && !hasOwnForm(t.Key()):
		// An element that may itself be null could not be told from a removal.
		if e := t.Elem().Kind(); e == reflect.String || e == reflect.Struct {
			return mergeMap
		}
	}
	return replace
}

func hasOwnForm(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// distance counts the values in which a and b differ.
func (s *shape) distance(a, b reflect.Value) int {
	n := 0
	for i := range s.fields {
		m := &s.fields[i]
		x, y := a.Field(m.index), b.Field(m.index)
		switch {
		case m.same(x, y):
		case m.merging == mergeStruct:
			n += m.inner.distance(x, y)
		default:
			n++
		}
	}
	return n
}

// same reports whether x and y are written alike.
func (m *member) same(x, y reflect.Value) bool {
	if m.merging == mergeStruct {
		return m.inner.same(x, y)
	}
	return equal(x, y) || m.omitempty && isEmpty(x) && isEmpty(y)
}

func (s *shape) same(a, b reflect.Value) bool {
	for i := range s.fields {
		m := &s.fields[i]
		if !m.same(a.Field(m.index), b.Field(m.index)) {
			return false
		}
	}
	return true
}

// isEmpty is what omitempty leaves out, among values that are nil or empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// equal is reflect.DeepEqual for the kinds that specs are made of, in a tenth of the time.
func equal(x, y reflect.Value) bool {
	switch x.Kind() {
	case reflect.String:
		return x.String() == y.String()
	case reflect.Slice:
		if x.IsNil() != y.IsNil() || x.Len() != y.Len() {
			return false
		}
		if x.UnsafePointer() == y.UnsafePointer() {
			return true
		}
		for i := range x.Len() {
			if !equal(x.Index(i), y.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return equalMap(x, y)
	case reflect.Pointer:
		return x.UnsafePointer() == y.UnsafePointer() || !x.IsNil() && !y.IsNil() && equal(x.Elem(), y.Elem())
	case reflect.Struct:
		for i := range x.NumField() {
			if !equal(x.Field(i), y.Field(i)) {
				return false
			}
		}
		return true
	default:
		return x.Equal(y)
	}
}

func equalMap(x, y reflect.Value) bool {
	if x.IsNil() != y.IsNil() || x.Len() != y.Len() {
		return false
	}
	if x.UnsafePointer() == y.UnsafePointer() {
		return true
	}
	switch a := x.Interface().(type) { // the common ones, without allocations
	case map[string]schema.Text:
		return maps.Equal(a, y.Interface().(map[string]schema.Text))
	case map[string]string:
		return maps.Equal(a, y.Interface().(map[string]string))
	}
	for entries := x.MapRange(); entries.Next(); {
		other := y.MapIndex(entries.Key())
		if !other.IsValid() || !equal(entries.Value(), other) {
			return false
		}
	}
	return true
}

// write writes the members that make b an a. Both must be addressable.
func (s *shape) write(enc *jsontext.Encoder, a, b reflect.Value) error {
	for i := range s.fields {
		m := &s.fields[i]
		x, y := a.Field(m.index), b.Field(m.index)
		if m.same(x, y) {
			continue
		}
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := m.write(enc, x, y); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func (m *member) write(enc *jsontext.Encoder, x, y reflect.Value) error {
	switch {
	case m.merging == mergeStruct:
		return m.inner.writeObject(enc, x, y)
	case m.merging == mergePointer && !x.IsNil() && !y.IsNil():
		return m.inner.writeObject(enc, x.Elem(), y.Elem())
	case m.merging == mergePointer && !x.IsNil():
		return m.inner.writeObject(enc, x.Elem(), reflect.New(x.Type().Elem()).Elem())
	case m.merging == mergeMap && !x.IsNil():
		return writeMap(enc, x, y)
	default:
		return writeValue(enc, x.Addr().Interface())
	}
}

func (s *shape) writeObject(enc *jsontext.Encoder, a, b reflect.Value) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	if err := s.write(enc, a, b); err != nil {
		return err
	}
	return enc.WriteToken(jsontext.EndObject)
}

func writeMap(enc *jsontext.Encoder, x, y reflect.Value) error {
	changes := map[string]any{}
	for entries := x.MapRange(); entries.Next(); {
		if other := y.MapIndex(entries.Key()); !other.IsValid() || !equal(entries.Value(), other) {
			changes[entries.Key().String()] = entries.Value().Interface()
		}
	}
	for entries := y.MapRange(); entries.Next(); {
		if !x.MapIndex(entries.Key()).IsValid() {
			changes[entries.Key().String()] = nil
		}
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if err := enc.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		if err := writeValue(enc, changes[name]); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// read patches v, which must be addressable. What v refers to is shared with
// others, and so is replaced, never written to. Unknown members are errors.
func (s *shape) read(dec *jsontext.Decoder, v reflect.Value) error {
	return eachMember(dec, func(name []byte) error { return s.readMember(dec, name, v) })
}

func (s *shape) readMember(dec *jsontext.Decoder, name []byte, v reflect.Value) error {
	m := s.byName[string(name)]
	if m == nil {
		return fmt.Errorf("%w %q", jsonv2.ErrUnknownName, name)
	}
	return m.read(dec, v.Field(m.index))
}

func (m *member) read(dec *jsontext.Decoder, v reflect.Value) error {
	switch kind := dec.PeekKind(); {
	case kind == 'n':
		v.SetZero()
		return dec.SkipValue()
	case kind != '{' || m.merging == replace:
		v.SetZero()
		return readValue(dec, v.Addr().Interface())
	case m.merging == mergeStruct:
		return m.inner.read(dec, v)
	case m.merging == mergePointer:
		patched := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			patched.Elem().Set(v.Elem())
		}
		v.Set(patched)
		return m.inner.read(dec, patched.Elem())
	default:
		return readMap(dec, v)
	}
}

func readMap(dec *jsontext.Decoder, v reflect.Value) error {
	patched := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entries := v.MapRange(); entries.Next(); {
		patched.SetMapIndex(entries.Key(), entries.Value())
	}
	v.Set(patched)
	return eachMember(dec, func(name []byte) error {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem())
		key.SetString(string(name))
		if dec.PeekKind() == 'n' {
			patched.SetMapIndex(key, reflect.Value{})
			return dec.SkipValue()
		}
		if err := readValue(dec, value.Interface()); err != nil {
			return err
		}
		patched.SetMapIndex(key, value.Elem())
		return nil
	})
}

// eachMember calls read for every member of the object that dec is at; read
// must consume the value, and may use the name only before it does.
func eachMember(dec *jsontext.Decoder, read func(name []byte) error) error {
	if dec.PeekKind() != '{' {
		return fmt.Errorf("want an object at %q", dec.StackPointer())
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		quoted, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := read(unquote(quoted)); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// unquote returns the text of a JSON string. What is not UTF-8 is replaced,
// as everywhere in a document.
func unquote(quoted jsontext.Value) []byte {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text
	}
	text, _ = jsontext.AppendUnquote(nil, quoted) // the error says that it is not UTF-8
	return text
}
