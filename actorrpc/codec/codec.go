package codec

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/fray-ml/fray/actorrpc/internal/reclaim"
)

// Kind is how arguments and results are written. The numbers are those of
// wire.Codec, so that one converts to the other.
type Kind int

// The kinds. The zero Kind is Msgpack.
const (
	Msgpack Kind = 1
	JSON    Kind = 2
	Pickle  Kind = 3 // between Python peers; rejected here
)

// OutOfBand is the length in bytes from which on bytes and the data of arrays
// are sent beside the message, in a buffer of their own.
const OutOfBand = 8 << 10

// MaxDepth is how deep lists and maps may nest in one value.
const MaxDepth = 100

// String is the name of the kind.
func (k Kind) String() string {
	switch k {
	case Msgpack, 0:
		return "msgpack"
	case JSON:
		return "json"
	case Pickle:
		return "pickle"
	}
	return "codec " + strconv.Itoa(int(k))
}

// Error reports that a value cannot be carried, or that bytes are no value, or that
// a value does not fit the type that wants it.
type Error struct {
	Path    string // "args[1].lr", "kwargs.x[3]", "result[0]"; "" if the bytes as a whole are bad
	Problem string // "want int, got string"
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Problem
	}
	return e.Path + ": " + e.Problem
}

// EncodeArgs writes the arguments of a call. The buffers alias the arguments.
// Errors are *Error.
func EncodeArgs(kind Kind, positional []any, named map[string]any) (args []byte, buffers [][]byte, err error) {
	return new(Shapes).EncodeArgs(kind, positional, named)
}

// EncodeArgs is the function of the name, and keeps shapes.
func (s *Shapes) EncodeArgs(kind Kind, positional []any, named map[string]any) (args []byte, buffers [][]byte, err error) {
	list := make([]any, len(positional))
	for i, v := range positional {
		if list[i], err = s.lower(v); err != nil {
			return nil, nil, within(err, "args"+indexStep(i))
		}
	}
	var table map[string]any
	if len(named) > 0 {
		table = make(map[string]any, len(named))
		for k, v := range named {
			if table[k], err = s.lower(v); err != nil {
				return nil, nil, within(err, "kwargs"+keyStep(k))
			}
		}
	}
	return write(kind, scope{args: true, positional: list, named: table})
}

// EncodeResult writes what a method returned. The buffers alias the value.
// Errors are *Error.
func EncodeResult(kind Kind, value any) (data []byte, buffers [][]byte, err error) {
	return new(Shapes).EncodeResult(kind, value)
}

// EncodeResult is the function of the name, and keeps shapes.
func (s *Shapes) EncodeResult(kind Kind, value any) (data []byte, buffers [][]byte, err error) {
	tree, err := s.lower(value)
	if err != nil {
		return nil, nil, within(err, "result")
	}
	return write(kind, scope{result: tree})
}

// Arguments are those of a call, as trees (see the package's comment). Bytes and
// arrays in them share the memory of the message.
type Arguments struct {
	Positional []any
	Named      map[string]any
	memory     *budget // what Into may still take
	shapes     *Shapes
}

// DecodeArgs reads the arguments of a call. They and what Into makes of them take
// at most so many bytes of memory, beside the message; 0: [DefaultMemory]. Errors
// are *Error and *TooLargeError.
func DecodeArgs(kind Kind, args []byte, buffers [][]byte, memory uint64) (*Arguments, error) {
	return new(Shapes).DecodeArgs(kind, args, buffers, memory)
}

// DecodeArgs is the function of the name, and keeps shapes.
func (s *Shapes) DecodeArgs(kind Kind, args []byte, buffers [][]byte, memory uint64) (*Arguments, error) {
	left := newBudget(memory)
	found, err := s.read(kind, true, args, buffers, left)
	if err != nil {
		return nil, err
	}
	return &Arguments{Positional: found.positional, Named: found.named, memory: left, shapes: s}, nil
}

// Into makes values of the given types of the positional arguments. Methods of Go
// have no names for their parameters, so named arguments are rejected. Errors are
// *Error, without a path if the number of arguments is wrong, and *TooLargeError.
func (a *Arguments) Into(types []reflect.Type) ([]reflect.Value, error) {
	return a.into(len(types), func(i int) reflect.Type { return types[i] })
}

// IntoVariadic is Into where the last of the types is that of any number of arguments.
func (a *Arguments) IntoVariadic(types []reflect.Type) ([]reflect.Value, error) {
	least := len(types) - 1
	if got := len(a.Positional); got < least {
		return nil, &Error{Problem: fmt.Sprintf("takes at least %s, got %d", counted(least, "argument"), got)}
	}
	return a.into(len(a.Positional), func(i int) reflect.Type { return types[min(i, least)] })
}

func (a *Arguments) into(n int, typeOf func(i int) reflect.Type) ([]reflect.Value, error) {
	if err := a.fit(n); err != nil {
		return nil, err
	}
	memory, shapes := a.memory, a.shapes
	if memory == nil { // made by hand
		memory, shapes = newBudget(0), new(Shapes)
	}
	if err := memory.times(n, reflect.TypeFor[reflect.Value]().Size()); err != nil {
		return nil, err
	}
	values := make([]reflect.Value, n)
	for i := range values {
		t := typeOf(i)
		if err := memory.times(2, t.Size()); err != nil { // a variadic call copies it
			return nil, err
		}
		values[i] = reflect.New(t).Elem()
		if err := shapes.assign(a.Positional[i], values[i], memory); err != nil {
			return nil, within(err, "args"+indexStep(i))
		}
	}
	return values, nil
}

func (a *Arguments) fit(want int) error {
	for _, name := range sortedKeys(a.Named) {
		return &Error{Path: "kwargs" + keyStep(name), Problem: fmt.Sprintf("unexpected argument %q", name)}
	}
	if got := len(a.Positional); got != want {
		return &Error{Problem: fmt.Sprintf("takes %s, got %d", counted(want, "argument"), got)}
	}
	return nil
}

// DecodeResult reads what a method returned into a pointer's target; *any receives
// the tree. The value takes at most so many bytes of memory, beside the message; 0:
// [DefaultMemory]. Errors are *Error and *TooLargeError, but for an into that is no
// pointer.
func DecodeResult(kind Kind, data []byte, buffers [][]byte, memory uint64, into any) error {
	return new(Shapes).DecodeResult(kind, data, buffers, memory, into)
}

// DecodeResult is the function of the name, and keeps shapes.
func (s *Shapes) DecodeResult(kind Kind, data []byte, buffers [][]byte, memory uint64, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("decode a result: want a pointer, got %T", into)
	}
	left := newBudget(memory)
	found, err := s.read(kind, false, data, buffers, left)
	if err != nil {
		return err
	}
	if err := s.assign(found.result, target.Elem(), left); err != nil {
		return within(err, "result")
	}
	return nil
}

// scope is what one message holds: the arguments of a call, or a result.
type scope struct {
	args       bool
	positional []any
	named      map[string]any
	result     any
}

func write(kind Kind, s scope) ([]byte, [][]byte, error) {
	switch kind {
	case Msgpack, 0:
		return writeMsgpack(s)
	case JSON:
		data, err := writeJSON(s)
		return data, nil, err
	case Pickle:
	}
	return nil, nil, refused(kind)
}

func (s *Shapes) read(kind Kind, args bool, data []byte, buffers [][]byte, memory *budget) (scope, error) {
	reclaim.Before(uint64(len(data))) // values take about as much as their bytes
	switch kind {
	case Msgpack, 0:
		return s.readMsgpack(args, data, buffers, memory)
	case JSON:
		return readJSON(args, data, memory)
	case Pickle:
	}
	return scope{}, refused(kind)
}

func refused(kind Kind) error {
	if kind == Pickle {
		return &Error{Problem: "pickle is for Python peers only; send msgpack"}
	}
	return &Error{Problem: kind.String() + " is unknown; send msgpack"}
}
