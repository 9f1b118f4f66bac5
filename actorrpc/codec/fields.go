package codec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// field is one of a struct's fields as it is carried.
type field struct {
	name      string
	index     []int // for reflect.Value.FieldByIndex
	omitEmpty bool
}

// Shapes keeps the fields of the struct types that were carried: finding them takes longer than the rest of a call. The zero
// value is ready, and may be used concurrently. EncodeArgs, EncodeResult, DecodeArgs and DecodeResult without one find
// the fields each time.
type Shapes struct {
	known sync.Map // shape, by reflect.Type
	names atomic.Pointer[map[string]string]
}

// shape is what is carried of a struct type.
type shape struct {
	fields []field // in their order
	sorted []int   // their places, by name
	err    error
}

// of is the shape of a struct type.
func (s *Shapes) of(t reflect.Type) shape {
	if known, ok := s.known.Load(t); ok {
		return known.(shape)
	}
	var found shape
	found.fields, found.err = fieldsOf(t)
	for i := range found.fields {
		found.sorted = append(found.sorted, i)
	}
	slices.SortFunc(found.sorted, func(a, b int) int { return strings.Compare(found.fields[a].name, found.fields[b].name) })
	s.known.Store(t, found)
	s.learn(found.fields)
	return found
}

// fieldNames are the names of all fields, each as one string. The map does not change.
func (s *Shapes) fieldNames() map[string]string {
	if names := s.names.Load(); names != nil {
		return *names
	}
	return nil
}

// learn adds the names of fields.
func (s *Shapes) learn(fields []field) {
	for {
		known := s.names.Load()
		names := map[string]string{}
		if known != nil {
			maps.Copy(names, *known)
		}
		for _, f := range fields {
			names[f.name] = f.name
		}
		if s.names.CompareAndSwap(known, &names) {
			return
		}
	}
}

// fieldsOf are the exported fields of a struct, those of embedded structs among them as
// Go promotes them. A name is that of the tag msgpack, else of json, else the
// field's in snake case; "-" leaves a field out.
func fieldsOf(t reflect.Type) ([]field, error) {
	fields := make([]field, 0, t.NumField())
	owner := map[string]string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, tagged := fieldTag(f)
		if !f.IsExported() || name == "-" || f.Anonymous && !tagged && isStruct(f.Type) || hidden(t, f.Index) {
			continue
		}
		if other, ok := owner[name]; ok {
			return nil, &Error{Problem: fmt.Sprintf("%s has two fields named %q, %s and %s; tag one of them", t, name, other, f.Name)}
		}
		owner[name] = f.Name
		fields = append(fields, field{name: name, index: f.Index, omitEmpty: strings.Contains(options, "omitempty")})
	}
	return fields, nil
}

// fieldTag is a field's name, what stands after it in the tag, and whether a tag names it.
func fieldTag(f reflect.StructField) (name, options string, tagged bool) {
	for _, key := range []string{"msgpack", "json"} {
		if tag, ok := f.Tag.Lookup(key); ok {
			name, options, _ = strings.Cut(tag, ",")
			if name != "" {
				return name, options, true
			}
		}
	}
	return Snake(f.Name), options, false
}

// hidden reports whether a field lies within an embedded struct that is itself a
// field because a tag names it, or behind an embedded pointer to an unexported type.
func hidden(t reflect.Type, index []int) bool {
	for i := range len(index) - 1 {
		outer := t.FieldByIndex(index[:i+1])
		if _, _, tagged := fieldTag(outer); tagged || outer.Type.Kind() == reflect.Pointer && !outer.IsExported() {
			return true
		}
	}
	return false
}

// isStruct reports whether a type, or what it points to, is a struct that is carried as a map.
func isStruct(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t != timeType() && t != arrayType() && t != refType()
}

func timeType() reflect.Type  { return reflect.TypeFor[time.Time]() }
func arrayType() reflect.Type { return reflect.TypeFor[NDArray]() }
func refType() reflect.Type   { return reflect.TypeFor[ActorRef]() }

// Snake is a name of Go in snake case, as fields and methods are named on the
// wire: "GetLesson" is "get_lesson", "URLOf" is "url_of", "Layer2Rate" is "layer2_rate".
func Snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) {
			after := i > 0 && !unicode.IsUpper(runes[i-1]) && runes[i-1] != '_'
			before := i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if after || before {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
