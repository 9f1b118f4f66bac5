package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// assign makes the value of v's type of a tree. Paths of its errors begin at the value.
// What it allocates is taken from the memory first.
func (s *Shapes) assign(tree any, v reflect.Value, memory *budget) error {
	a := assigning{shapes: s, memory: memory}
	return a.value(tree, v)
}

// assigning is the making of one value.
type assigning struct {
	shapes *Shapes
	memory *budget
}

func (a *assigning) value(tree any, v reflect.Value) error {
	switch n := tree.(type) { // what is common, without a detour
	case int64:
		if v.CanInt() && !v.OverflowInt(n) {
			v.SetInt(n)
			return nil
		}
	case string:
		if v.Kind() == reflect.String {
			v.SetString(n)
			return nil
		}
	}
	switch v.Type() {
	case timeType(), arrayType(), refType():
		return exactly(tree, v)
	}
	switch v.Kind() {
	case reflect.Interface:
		return loosely(tree, v)
	case reflect.Pointer:
		return a.pointer(tree, v)
	case reflect.Bool:
		return truth(tree, v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer(tree, v)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return natural(tree, v)
	case reflect.Float32, reflect.Float64:
		return float(tree, v)
	case reflect.Slice, reflect.Array:
		return a.sequence(tree, v)
	case reflect.Map:
		return a.table(tree, v)
	case reflect.Struct:
		return a.record(tree, v)
	}
	return mismatch(tree, v.Type())
}

// mismatch names what was wanted and what is there, by the terms of the wire.
func mismatch(tree any, t reflect.Type) error {
	return &Error{Problem: "want " + wanted(t) + ", got " + got(tree)}
}

func wanted(t reflect.Type) string {
	switch t {
	case timeType():
		return "time"
	case arrayType():
		return "array"
	case refType():
		return "actor"
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "list"
	case reflect.Map, reflect.Struct:
		return "map"
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Interface:
		return "a " + t.String() + ", which no codec carries"
	}
	return t.Kind().String()
}

func got(tree any) string {
	switch v := tree.(type) {
	case nil:
		return "nil"
	case bool:
		return "bool"
	case int64, uint64:
		return "int"
	case float64:
		return "float"
	case string:
		return "string"
	case []byte:
		return "bytes"
	case []any:
		return "list"
	case map[string]any, map[any]any:
		return "map"
	case NDArray:
		return fmt.Sprintf("array of %s, shape %s", v.DType, shapeText(v.Shape))
	case ActorRef:
		return "actor"
	}
	return "time"
}

// exactly takes the types that are carried as themselves.
func exactly(tree any, v reflect.Value) error {
	if r := reflect.ValueOf(tree); r.IsValid() && r.Type() == v.Type() {
		v.Set(r)
		return nil
	}
	return mismatch(tree, v.Type())
}

func loosely(tree any, v reflect.Value) error {
	r := reflect.ValueOf(tree)
	if !r.IsValid() {
		v.SetZero()
		return nil
	}
	if !r.Type().AssignableTo(v.Type()) {
		return mismatch(tree, v.Type())
	}
	v.Set(r)
	return nil
}

func (a *assigning) pointer(tree any, v reflect.Value) error {
	if tree == nil {
		v.SetZero()
		return nil
	}
	if err := a.memory.times(1, v.Type().Elem().Size()); err != nil {
		return err
	}
	target := reflect.New(v.Type().Elem())
	if err := a.value(tree, target.Elem()); err != nil {
		return err
	}
	v.Set(target)
	return nil
}

func truth(tree any, v reflect.Value) error {
	b, ok := scalar(tree).(bool)
	if !ok {
		return mismatch(tree, v.Type())
	}
	v.SetBool(b)
	return nil
}

func integer(tree any, v reflect.Value) error {
	switch n := scalar(tree).(type) {
	case int64:
		if v.OverflowInt(n) {
			return overflow(n, v)
		}
		v.SetInt(n)
		return nil
	case uint64:
		return overflow(n, v)
	}
	return mismatch(tree, v.Type())
}

func natural(tree any, v reflect.Value) error {
	switch n := scalar(tree).(type) {
	case int64:
		if n < 0 || v.OverflowUint(uint64(n)) {
			return overflow(n, v)
		}
		v.SetUint(uint64(n))
		return nil
	case uint64:
		if v.OverflowUint(n) {
			return overflow(n, v)
		}
		v.SetUint(n)
		return nil
	}
	return mismatch(tree, v.Type())
}

func float(tree any, v reflect.Value) error {
	switch n := scalar(tree).(type) {
	case int64:
		v.SetFloat(float64(n))
		return nil
	case uint64:
		v.SetFloat(float64(n))
		return nil
	case float64:
		if !math.IsInf(n, 0) && v.OverflowFloat(n) {
			return overflow(n, v)
		}
		v.SetFloat(n)
		return nil
	}
	return mismatch(tree, v.Type())
}

func overflow(n any, v reflect.Value) error {
	return &Error{Problem: fmt.Sprintf("%v is out of the range of %s", n, v.Kind())}
}

func (a *assigning) sequence(tree any, v reflect.Value) error {
	ofBytes := v.Type().Elem().Kind() == reflect.Uint8
	switch list := tree.(type) {
	case nil:
		if v.Kind() == reflect.Slice {
			v.SetZero()
			return nil
		}
	case []byte:
		if ofBytes {
			return setBytes(list, v)
		}
	case []any:
		return a.elements(len(list), func(i int) any { return list[i] }, v)
	case NDArray:
		if len(list.Shape) == 1 && list.DType == Uint8 && ofBytes {
			return setBytes(list.Data, v)
		}
		if len(list.Shape) == 1 {
			return a.elements(list.Len(), list.at, v)
		}
	}
	return mismatch(tree, v.Type())
}

func (a *assigning) elements(n int, element func(i int) any, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		if err := a.memory.times(n, v.Type().Elem().Size()); err != nil {
			return err
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
	}
	if v.Len() != n {
		return &Error{Problem: fmt.Sprintf("want a list of %d, got %d", v.Len(), n)}
	}
	for i := range n {
		if err := a.value(element(i), v.Index(i)); err != nil {
			return within(err, indexStep(i))
		}
	}
	return nil
}

func setBytes(data []byte, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		v.SetBytes(data)
		return nil
	}
	if v.Len() != len(data) {
		return &Error{Problem: fmt.Sprintf("want %d bytes, got %d", v.Len(), len(data))}
	}
	for i, b := range data {
		v.Index(i).SetUint(uint64(b))
	}
	return nil
}

func (a *assigning) table(tree any, v reflect.Value) error {
	var rows reflect.Value
	switch t := tree.(type) {
	case nil:
		v.SetZero()
		return nil
	case map[string]any, map[any]any:
		rows = reflect.ValueOf(t)
	default:
		return mismatch(tree, v.Type())
	}
	if err := a.memory.take(tableSize(rows.Len(), v.Type().Key().Size()+v.Type().Elem().Size())); err != nil {
		return err
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), rows.Len()))
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for row := rows.MapRange(); row.Next(); {
		name := row.Key().Interface()
		key.SetZero()
		value.SetZero()
		if err := a.value(name, key); err != nil {
			return keyError(name, err)
		}
		if err := a.value(row.Value().Interface(), value); err != nil {
			return within(err, anyKeyStep(name))
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

// keyError is what is wrong with a key, unless it is its size.
func keyError(name any, err error) error {
	if over, ok := errors.AsType[*TooLargeError](err); ok {
		return over
	}
	return &Error{Path: anyKeyStep(name), Problem: "the key: " + err.Error()}
}

func (a *assigning) record(tree any, v reflect.Value) error {
	rows, ok := tree.(map[string]any)
	if !ok {
		return mismatch(tree, v.Type())
	}
	known := a.shapes.of(v.Type())
	if known.err != nil {
		return known.err
	}
	met := 0
	for i := range known.fields {
		f := &known.fields[i]
		row, ok := rows[f.name]
		if !ok {
			continue
		}
		met++
		target, err := a.reach(v, f.index)
		if err == nil {
			err = a.value(row, target)
		}
		if err != nil {
			return within(err, keyStep(f.name))
		}
	}
	if met == len(rows) {
		return nil
	}
	return unknownField(rows, known.fields, v.Type())
}

// reach is a field; embedded pointers on the way to it are made.
func (a *assigning) reach(v reflect.Value, index []int) (reflect.Value, error) {
	for i, step := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if err := a.memory.times(1, v.Type().Elem().Size()); err != nil {
					return v, err
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(step)
	}
	return v, nil
}

func unknownField(rows map[string]any, fields []field, t reflect.Type) error {
	names := make([]string, len(fields))
	known := map[string]bool{}
	for i, f := range fields {
		names[i], known[f.name] = f.name, true
	}
	for _, name := range sortedKeys(rows) {
		if !known[name] {
			return &Error{Path: keyStep(name), Problem: fmt.Sprintf("%s has no such field; it has %s", t, strings.Join(names, ", "))}
		}
	}
	return nil
}
