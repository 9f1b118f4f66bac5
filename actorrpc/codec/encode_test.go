package codec_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
)

type rate float32

type handle struct{ name string }

func (h *handle) ActorRef() codec.ActorRef { return codec.ActorRef{Name: h.name} }

type base struct {
	ID    int
	Notes *string
}

type trainer struct {
	base
	LearningRate rate `msgpack:"lr"`
	Steps        int  `json:"steps,omitempty"`
	HTTPPort     uint16
	Secret       string `json:"-"`
	hidden       int
	At           time.Time
}

// Inner is embedded under a name.
type Inner struct{ A int }

type named struct {
	*Inner `json:"in"`
	*hiding
}

type hiding struct{ B int }

type stamped struct{ time.Time }

// tree encodes a value and gives back what `any` receives of it.
func tree(t *testing.T, value any) any {
	t.Helper()
	data, buffers, err := codec.EncodeResult(codec.Msgpack, value)
	if err != nil {
		t.Fatalf("encode %#v: %v", value, err)
	}
	var got any
	if err := codec.DecodeResult(codec.Msgpack, data, buffers, 0, &got); err != nil {
		t.Fatalf("decode %#v: %v", value, err)
	}
	return got
}

func TestEncodeGoTypes(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	for _, c := range []struct {
		name        string
		value, want any
	}{
		{"int8", int8(-3), int64(-3)},
		{"uint16", uint16(3), int64(3)},
		{"uint64 within int64", uint64(3), int64(3)},
		{"uint64 above it", uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{"many pointers", slices.Repeat([]*int{new(1)}, 500), slices.Repeat([]any{int64(1)}, 500)},
		{"embedded under a name", named{Inner: &Inner{A: 2}, hiding: &hiding{3}}, map[string]any{"in": map[string]any{"a": int64(2)}}},
		{"embedded time", stamped{time.Unix(1, 0)}, map[string]any{"time": time.Unix(1, 0).UTC()}},
		{"named float", rate(0.5), 0.5},
		{"pointer", new(new(7)), int64(7)},
		{"nil pointer", (*int)(nil), nil},
		{"nil slice", []string(nil), nil},
		{"nil bytes", []byte(nil), nil},
		{"nil map", map[string]int(nil), nil},
		{"nil list", []any(nil), nil},
		{"nil referrer", (*handle)(nil), nil},
		{"array of bytes", [3]byte{1, 2, 3}, []byte{1, 2, 3}},
		{"named bytes", blob("ab"), []byte("ab")},
		{"slice of slices", [][]int{{1}, {}}, []any{[]any{int64(1)}, []any{}}},
		{"array", [2]bool{true, false}, []any{true, false}},
		{"map of named strings", map[word]int{"a": 1}, map[string]any{"a": int64(1)}},
		{"map of ints", map[int8]string{-1: "x"}, map[any]any{int64(-1): "x"}},
		{"map of any", map[any]any{"a": 1, uint8(2): 3}, map[any]any{"a": int64(1), int64(2): int64(3)}},
		{"map of any, strings only", map[any]any{"a": 1}, map[string]any{"a": int64(1)}},
		{"time of a zone", time.Date(2024, 2, 29, 13, 0, 0, 7, zone), time.Date(2024, 2, 29, 12, 0, 0, 7, time.UTC)},
		{"handle", &handle{"counter"}, codec.ActorRef{Name: "counter"}},
		{"handle in a list", []*handle{{"a"}, nil}, []any{codec.ActorRef{Name: "a"}, nil}},
		{
			"struct", trainer{base: base{ID: 4}, LearningRate: 0.5, HTTPPort: 80, Secret: "s", hidden: 1, At: time.Unix(0, 0)},
			map[string]any{"id": int64(4), "notes": nil, "lr": 0.5, "http_port": int64(80), "at": time.Unix(0, 0).UTC()},
		},
		{"struct with what may be empty", struct {
			N int `json:",omitempty"`
		}{3}, map[string]any{"n": int64(3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tree(t, c.value); !same(got, c.want) {
				t.Errorf("got %#v, want %#v", got, c.want)
			}
		})
	}
}

type (
	blob []byte
	word string
	loop *loop
)

func TestEncodeRefuses(t *testing.T) {
	const deep = "nested deeper than 100 levels, or contains itself"
	list := make([]any, 1)
	list[0] = list
	table := map[string]any{}
	table["me"] = table
	var pointer loop
	pointer = &pointer
	for _, c := range []struct {
		name          string
		value         any
		path, problem string
	}{
		{"func", []any{1, func() {}}, "result[1]", "a func() is carried by no codec; send what it is made of"},
		{"channel in a struct", struct{ C chan int }{make(chan int)}, "result.c", "a chan int is carried by no codec; send what it is made of"},
		{"complex", map[string]any{"two words": 1i}, `result["two words"]`, "a complex128 is carried by no codec; send what it is made of"},
		{"under an int", map[int]any{-4: 1i}, "result[-4]", "a complex128 is carried by no codec; send what it is made of"},
		{"pointer without a type", reflect.ValueOf(&pointer).UnsafePointer(), "result", "an unsafe.Pointer is carried by no codec; send what it is made of"},
		{"no UTF-8", []string{"a", "\xff"}, "result[1]", "the string is no valid UTF-8; send bytes"},
		{"no UTF-8 in a key", []any{map[string]int{"\xff": 1}}, "result[0]", "the string is no valid UTF-8; send bytes"},
		{"no UTF-8 in a reference", codec.ActorRef{URL: "\xff"}, "result", "the string is no valid UTF-8; send bytes"},
		{"key of floats", map[float64]int{1: 1}, "result", "a map key of type float64 is carried by no codec; use a string or an int"},
		{"key of nil", map[any]int{nil: 1}, "result", "a map key of type nil is carried by no codec; use a string or an int"},
		{"year 10000", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "result", "a time outside of the years 1 to 9999 is carried by no codec"},
		{"shape", codec.Array([]int16{1, 2}, 2, 3), "result", "an array of shape [2, 3] of int16 has 12 bytes, got 4"},
		{"negative shape", codec.Array([]int16{1}, -1), "result", "no array has the shape [-1]"},
		{"no dtype", codec.NDArray{DType: "U3"}, "result", "an array of dtype U3 is carried by no codec; convert it to a bool, int, float or complex dtype"},
		{"list in itself", list, "result", deep},
		{"map in itself", table, "result", deep},
		{"pointer to itself", pointer, "result", deep},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := codec.EncodeResult(codec.Msgpack, c.value)
			got, ok := errors.AsType[*codec.Error](err)
			if !ok || got.Problem != c.problem || c.problem != deep && got.Path != c.path {
				t.Errorf("got %v, want %s: %s", err, c.path, c.problem)
			}
		})
	}
}

func TestEncodeNamesTheNamed(t *testing.T) {
	_, _, err := codec.EncodeArgs(codec.Msgpack, nil, map[string]any{"x": []any{1i}})
	checkError(t, err, codec.Error{Path: "kwargs.x[0]", Problem: "a complex128 is carried by no codec; send what it is made of"})
}

func TestTwoFieldsOfOneName(t *testing.T) {
	value := struct {
		A int `json:"x"`
		B int `msgpack:"x"`
	}{}
	_, _, err := codec.EncodeArgs(codec.Msgpack, []any{value}, nil)
	got, ok := errors.AsType[*codec.Error](err)
	if want := "args[0]"; !ok || got.Path != want {
		t.Errorf("got %v, want an error at %s", err, want)
	}
}

func TestOtherKinds(t *testing.T) {
	for kind, want := range map[codec.Kind]string{
		codec.Pickle: "pickle is for Python peers only; send msgpack",
		7:            "codec 7 is unknown; send msgpack",
	} {
		_, _, err := codec.EncodeArgs(kind, nil, nil)
		checkError(t, err, codec.Error{Problem: want})
		_, err = codec.DecodeArgs(kind, []byte("\x92\x90\x80"), nil, 0)
		checkError(t, err, codec.Error{Problem: want})
	}
	if _, err := codec.DecodeArgs(0, []byte("\x92\x90\x80"), nil, 0); err != nil {
		t.Errorf("kind 0: got %v, want msgpack", err)
	}
}

func TestEqualMapsAreEqualBytes(t *testing.T) {
	value := map[any]any{"b": 1, "a": 2, 3: 4, -3: 5, uint64(math.MaxUint64): 6, uint64(math.MaxUint64 - 1): 7}
	first, _, err := codec.EncodeResult(codec.Msgpack, value)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if again, _, _ := codec.EncodeResult(codec.Msgpack, value); !bytes.Equal(again, first) {
			t.Fatalf("got %x and then %x", first, again)
		}
	}
}

// TestNothingLargeIsCopied compares addresses on both ways.
func TestNothingLargeIsCopied(t *testing.T) {
	data, floats := make([]byte, 1<<20), make([]float32, 1<<18)
	args, buffers, err := codec.EncodeArgs(codec.Msgpack, []any{data, codec.Array(floats, 512, 512)}, nil)
	if err != nil || len(buffers) != 2 || len(args) > 100 {
		t.Fatalf("got %d bytes, %d buffers, error %v; want few bytes and 2 buffers", len(args), len(buffers), err)
	}
	if &buffers[0][0] != &data[0] {
		t.Error("encoding copied the bytes")
	}
	floats[3] = 1.5
	decoded, err := codec.DecodeArgs(codec.Msgpack, args, buffers, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := decoded.Positional[0].([]byte); &got[0] != &data[0] {
		t.Error("decoding copied the bytes")
	}
	weights := []uint8{1, 2, 3}
	into := assigned[[]byte](t, codec.Array(weights))
	if into[0] = 7; weights[0] != 7 {
		t.Error("an array of uint8 was copied into bytes")
	}
	values, err := codec.Values[float32](decoded.Positional[1].(codec.NDArray))
	if err != nil {
		t.Fatal(err)
	}
	if &values[0] != &floats[0] || values[3] != 1.5 {
		t.Errorf("the floats were copied, or are not the same: got %v", values[3])
	}
}

// assigned is a value as a T receives it.
func assigned[T any](t *testing.T, value codec.NDArray) T {
	t.Helper()
	values, err := (&codec.Arguments{Positional: []any{value}}).Into([]reflect.Type{reflect.TypeFor[T]()})
	if err != nil {
		t.Fatal(err)
	}
	return values[0].Interface().(T)
}

// TestAppendingToOneArgumentLeavesTheNext, though both are parts of one message.
func TestAppendingToOneArgumentLeavesTheNext(t *testing.T) {
	args, _, err := codec.EncodeArgs(codec.Msgpack, []any{[]byte("ab"), []byte("cd")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := codec.DecodeArgs(codec.Msgpack, args, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(decoded.Positional[0].([]byte), "xyz"...)
	if got := decoded.Positional[1].([]byte); string(got) != "cd" {
		t.Errorf("got %q, want cd", got)
	}
}
