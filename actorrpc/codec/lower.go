package codec

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const tooDeep = "nested deeper than 100 levels, or contains itself"

// lower makes a tree of a value of Go. Paths of its errors begin at the value.
func (s *Shapes) lower(v any) (any, error) {
	l := lowering{shapes: s}
	return l.value(v, 0)
}

// row is one of the rows of a struct.
type row struct {
	name  string
	value any
}

// rows are a map of a struct, by name. They are in trees that are written only; readers make map[string]any of them.
type rows []row

// lowering is the making of one tree.
type lowering struct {
	shapes   *Shapes
	pointers int // that the value at hand is behind
}

// value takes what is common by its type, and the rest by reflection.
func (l *lowering) value(v any, depth int) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64, float64:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		return unsigned(v), nil
	case string:
		return text(v)
	case []byte:
		if v == nil {
			return nil, nil
		}
		return v, nil
	case time.Time:
		return inCalendar(v.UTC())
	case NDArray:
		return v, v.check()
	case ActorRef:
		return checkRef(v)
	case Referrer:
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
			return nil, nil
		}
		return checkRef(v.ActorRef())
	case []any:
		if v == nil {
			return nil, nil
		}
		return l.list(len(v), func(i int) (any, error) { return l.value(v[i], depth+1) }, depth)
	}
	return l.reflected(reflect.ValueOf(v), depth)
}

// part is value for what is within another value. What is plain does not become an interface on the way.
func (l *lowering) part(v reflect.Value, depth int) (any, error) {
	if v.Kind() == reflect.String && v.Type().NumMethod() == 0 {
		return text(v.String())
	}
	return l.value(v.Interface(), depth)
}

func (l *lowering) reflected(v reflect.Value, depth int) (any, error) {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return unsigned(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.String:
		return text(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return l.target(v, depth)
	case reflect.Slice:
		if v.IsNil() {
			return nil, nil
		}
		return l.sequence(v, depth)
	case reflect.Array:
		return l.sequence(v, depth)
	case reflect.Map:
		if v.IsNil() {
			return nil, nil
		}
		return l.table(v, depth)
	case reflect.Struct:
		return l.record(v, depth)
	}
	return nil, &Error{Problem: withArticle(v.Type().String()) + " is carried by no codec; send what it is made of"}
}

func withArticle(name string) string {
	if strings.ContainsAny(name[:1], "aeio") || strings.HasPrefix(name, "unsafe.") {
		return "an " + name
	}
	return "a " + name
}

// target follows a pointer, which is no level of the value but may lead to itself.
func (l *lowering) target(v reflect.Value, depth int) (any, error) {
	if l.pointers++; l.pointers > 2*MaxDepth {
		return nil, &Error{Problem: tooDeep}
	}
	tree, err := l.value(v.Elem().Interface(), depth)
	l.pointers--
	return tree, err
}

func (l *lowering) sequence(v reflect.Value, depth int) (any, error) {
	if v.Type().Elem().Kind() != reflect.Uint8 {
		return l.list(v.Len(), func(i int) (any, error) { return l.part(v.Index(i), depth+1) }, depth)
	}
	if v.Kind() == reflect.Slice {
		return v.Bytes(), nil
	}
	data := make([]byte, v.Len())
	reflect.Copy(reflect.ValueOf(data), v.Convert(reflect.ArrayOf(v.Len(), reflect.TypeFor[byte]())))
	return data, nil
}

func (l *lowering) list(n int, element func(i int) (any, error), depth int) (any, error) {
	if depth >= MaxDepth {
		return nil, &Error{Problem: tooDeep}
	}
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = element(i); err != nil {
			return nil, within(err, indexStep(i))
		}
	}
	return list, nil
}

func (l *lowering) table(v reflect.Value, depth int) (any, error) {
	if depth >= MaxDepth {
		return nil, &Error{Problem: tooDeep}
	}
	words := make(map[string]any, v.Len())
	var numbers map[any]any
	for rows := v.MapRange(); rows.Next(); {
		key, err := l.key(rows.Key())
		if err != nil {
			return nil, err
		}
		value, err := l.part(rows.Value(), depth+1)
		if err != nil {
			return nil, within(err, anyKeyStep(key))
		}
		if word, ok := key.(string); ok {
			words[word] = value
			continue
		}
		if numbers == nil {
			numbers = make(map[any]any, v.Len())
		}
		numbers[key] = value
	}
	if numbers == nil {
		return words, nil
	}
	for k, v := range words {
		numbers[k] = v
	}
	return numbers, nil
}

// key is a string, int64 or uint64.
func (l *lowering) key(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.String:
		return text(v.String())
	case v.IsValid() && v.CanInt():
		return v.Int(), nil
	case v.IsValid() && v.CanUint():
		return unsigned(v.Uint()), nil
	}
	name := "nil"
	if v.IsValid() {
		name = v.Type().String()
	}
	return nil, &Error{Problem: fmt.Sprintf("a map key of type %s is carried by no codec; use a string or an int", name)}
}

func (l *lowering) record(v reflect.Value, depth int) (any, error) {
	if depth >= MaxDepth {
		return nil, &Error{Problem: tooDeep}
	}
	known := l.shapes.of(v.Type())
	if known.err != nil {
		return nil, known.err
	}
	table := make(rows, 0, len(known.fields))
	for _, i := range known.sorted {
		f := &known.fields[i]
		field, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitEmpty && field.IsZero() {
			continue // behind an embedded pointer that is nil, or left out when empty
		}
		value, err := l.part(field, depth+1)
		if err != nil {
			return nil, within(err, keyStep(f.name))
		}
		table = append(table, row{f.name, value})
	}
	return table, nil
}

func unsigned(n uint64) any {
	if n <= math.MaxInt64 {
		return int64(n)
	}
	return n
}

func text(s string) (any, error) {
	if !utf8.ValidString(s) {
		return nil, &Error{Problem: "the string is no valid UTF-8; send bytes"}
	}
	return s, nil
}

// inCalendar rejects times that Python's datetime cannot hold.
func inCalendar(t time.Time) (any, error) {
	if year := t.Year(); year < 1 || year > 9999 {
		return nil, &Error{Problem: "a time outside of the years 1 to 9999 is carried by no codec"}
	}
	return t, nil
}

func checkRef(r ActorRef) (any, error) {
	for _, s := range []string{r.Name, r.Namespace, r.URL, r.Member} {
		if _, err := text(s); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func anyKeyStep(key any) string {
	switch key := key.(type) {
	case string:
		return keyStep(key)
	case int64:
		return "[" + strconv.FormatInt(key, 10) + "]"
	case uint64:
		return "[" + strconv.FormatUint(key, 10) + "]"
	}
	return "[?]"
}
