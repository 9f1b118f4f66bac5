package codec_test

import (
	"encoding/binary"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/fray-ml/fray/actorrpc/codec"
)

type settings struct {
	Rate   float64 `msgpack:"lr"`
	Layers []int
	Inner  *settings
	Extra  any
}

type outer struct {
	*Embedded
	B int
}

// Embedded is exported, so that a pointer to it can be made.
type Embedded struct{ A int }

// into sends a value and receives it as the type of want.
func into(t *testing.T, kind codec.Kind, value, want any) (any, error) {
	t.Helper()
	args, buffers, err := codec.EncodeArgs(kind, []any{value}, nil)
	if err != nil {
		t.Fatalf("encode %#v: %v", value, err)
	}
	decoded, err := codec.DecodeArgs(kind, args, buffers, 0)
	if err != nil {
		t.Fatalf("decode %#v: %v", value, err)
	}
	values, err := decoded.Into([]reflect.Type{reflect.TypeOf(want)})
	if err != nil {
		return nil, err
	}
	return values[0].Interface(), nil
}

func TestInto(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	row := map[string]any{"lr": 1, "layers": []any{2, 3}, "inner": map[string]any{"extra": "x"}}
	for _, c := range []struct {
		name        string
		value, want any
	}{
		{"int8", -128, int8(-128)},
		{"uint8", 255, uint8(255)},
		{"greatest uint64", uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{"int as float", 3, 3.0},
		{"greatest uint64 as float", uint64(math.MaxUint64), float64(math.MaxUint64)},
		{"float32", 0.1, float32(0.1)},
		{"infinite float32", math.Inf(-1), float32(math.Inf(-1))},
		{"bool", true, true},
		{"named string", "a", word("a")},
		{"pointer", 3, new(3)},
		{"nil pointer", nil, (*int)(nil)},
		{"nil slice", nil, []int(nil)},
		{"nil map", nil, map[string]int(nil)},
		{"array", []any{1, 2}, [2]int{1, 2}},
		{"array of bytes", []byte{1, 2}, [2]byte{1, 2}},
		{"named bytes", []byte{1, 2}, blob{1, 2}},
		{"slice of floats", []any{1, 2.5}, []float64{1, 2.5}},
		{"map", map[string]any{"a": 1}, map[word]uint8{"a": 1}},
		{"map of ints", map[int]any{1: "a", -1: nil}, map[int16]*string{1: new("a"), -1: nil}},
		{"struct", row, settings{Rate: 1, Layers: []int{2, 3}, Inner: &settings{Extra: "x"}}},
		{"embedded pointer", map[string]any{"a": 1, "b": 2}, outer{Embedded: &Embedded{A: 1}, B: 2}},
		{"embedded pointer left nil", map[string]any{"b": 2}, outer{B: 2}},
		{"time", at, at},
		{"actor", &handle{"c"}, codec.ActorRef{Name: "c"}},
		{"array of floats as a slice", codec.Array([]float32{1, -2.5}), []float64{1, -2.5}},
		{"array of bools as a slice", codec.Array([]bool{true, false}), []bool{true, false}},
		{"array of bytes as bytes", codec.Array([]uint8{1, 200}), []byte{1, 200}},
		{"array of uint64 as a slice", codec.Array([]uint64{math.MaxUint64}), []uint64{math.MaxUint64}},
		{"number of numpy", codec.NDArray{DType: codec.Int16, Data: []byte{0xfe, 0xff}}, -2},
		{"half of numpy", codec.NDArray{DType: codec.Float16, Data: []byte{0x00, 0xc1}}, -2.5},
		{"bool of numpy", codec.NDArray{DType: codec.Bool, Data: []byte{1}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := into(t, codec.Msgpack, c.value, c.want)
			if err != nil {
				t.Fatal(err)
			}
			if !same(got, c.want) {
				t.Errorf("got %#v, want %#v", got, c.want)
			}
		})
	}
}

func TestIntoRefuses(t *testing.T) {
	for _, c := range []struct {
		name          string
		value, want   any
		path, problem string
	}{
		{"string for int", "a", 1, "args[0]", "want int, got string"},
		{"float for int", 1.0, 1, "args[0]", "want int, got float"},
		{"bool for int", true, 1, "args[0]", "want int, got bool"},
		{"int for bool", 1, true, "args[0]", "want bool, got int"},
		{"nil for int", nil, 1, "args[0]", "want int, got nil"},
		{"bytes for string", []byte("a"), "", "args[0]", "want string, got bytes"},
		{"string for bytes", "a", []byte{}, "args[0]", "want bytes, got string"},
		{"bytes for list", []byte("a"), []int{}, "args[0]", "want list, got bytes"},
		{"list for pointer to bool", []int{}, new(true), "args[0]", "want bool, got list"},
		{"map for time", map[string]int{}, time.Time{}, "args[0]", "want time, got map"},
		{"time for struct", time.Unix(0, 0), settings{}, "args[0]", "want map, got time"},
		{"array for actor", codec.Array([]int8{1}), codec.ActorRef{}, "args[0]", "want actor, got array of int8, shape [1]"},
		{"matrix for list", codec.Array([]int8{1}, 1, 1), []int{}, "args[0]", "want list, got array of int8, shape [1, 1]"},
		{"complex of numpy for float", codec.NDArray{DType: codec.Complex64, Data: make([]byte, 8)}, 1.0, "args[0]", "want float64, got array of complex64, shape []"},
		{"func", 1, func() {}, "args[0]", "want a func(), which no codec carries, got int"},
		{"300 for int8", 300, int8(0), "args[0]", "300 is out of the range of int8"},
		{"-1 for uint", -1, uint(0), "args[0]", "-1 is out of the range of uint"},
		{"300 for uint8", 300, uint8(0), "args[0]", "300 is out of the range of uint8"},
		{"2^63 for int64", uint64(1 << 63), int64(0), "args[0]", "9223372036854775808 is out of the range of int64"},
		{"2^63 for uint32", uint64(1 << 63), uint32(0), "args[0]", "9223372036854775808 is out of the range of uint32"},
		{"1e300 for float32", 1e300, float32(0), "args[0]", "1e+300 is out of the range of float32"},
		{"3 for [2]int", []int{1, 2, 3}, [2]int{}, "args[0]", "want a list of 2, got 3"},
		{"3 for [2]byte", []byte{1, 2, 3}, [2]byte{}, "args[0]", "want 2 bytes, got 3"},
		{"in a struct", map[string]any{"layers": []any{1, "x"}}, settings{}, "args[0].layers[1]", "want int, got string"},
		{"in a map", map[string]any{"a b": nil}, map[string]int{}, `args[0]["a b"]`, "want int, got nil"},
		{"in a map of ints", map[int]any{5: "x"}, map[int]int{}, "args[0][5]", "want int, got string"},
		{"key", map[string]any{"a": 1}, map[int]int{}, "args[0].a", "the key: want int, got string"},
		{"unknown field", map[string]any{"lr": 1, "layer": 2}, settings{}, "args[0].layer", "codec_test.settings has no such field; it has lr, layers, inner, extra"},
		{"map of ints for struct", map[int]int{1: 1}, settings{}, "args[0]", "want map, got map"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := into(t, codec.Msgpack, c.value, c.want)
			checkError(t, err, codec.Error{Path: c.path, Problem: c.problem})
		})
	}
}

func TestIntoCountsArguments(t *testing.T) {
	ints := []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[int]()}
	a := codec.Arguments{Positional: []any{int64(1), int64(2), int64(3)}}
	_, err := a.Into(ints)
	checkError(t, err, codec.Error{Problem: "takes 2 arguments, got 3"})
	_, err = a.Into(ints[:1])
	checkError(t, err, codec.Error{Problem: "takes 1 argument, got 3"})
	a.Named = map[string]any{"z": nil, "y": nil}
	_, err = a.Into(ints)
	checkError(t, err, codec.Error{Path: "kwargs.y", Problem: `unexpected argument "y"`})
}

func TestDecodeResultWantsAPointer(t *testing.T) {
	if err := codec.DecodeResult(codec.Msgpack, []byte{1}, nil, 0, 7); err == nil {
		t.Error("got no error for an int")
	}
	var n int8
	err := codec.DecodeResult(codec.Msgpack, []byte{0xa1, 'a'}, nil, 0, &n)
	checkError(t, err, codec.Error{Path: "result", Problem: "want int8, got string"})
}

func TestValues(t *testing.T) {
	data := make([]byte, 17)
	binary.LittleEndian.PutUint64(data[1:], math.Float64bits(1.5))
	binary.LittleEndian.PutUint64(data[9:], math.Float64bits(-2))
	// One of the two is not aligned, and so is copied.
	for _, a := range []codec.NDArray{
		{DType: codec.Float64, Shape: []int{2}, Data: data[1:]},
		{DType: codec.Float64, Shape: []int{2}, Data: slices.Clone(data[1:])},
	} {
		got, err := codec.Values[float64](a)
		if err != nil || !slices.Equal(got, []float64{1.5, -2}) {
			t.Fatalf("got %v, %v, want [1.5 -2]", got, err)
		}
		if at := uintptr(unsafe.Pointer(&got[0])); at%unsafe.Alignof(got[0]) != 0 {
			t.Errorf("floats at the address %x, which is not aligned", at)
		}
	}
	bools, err := codec.Values[bool](codec.NDArray{DType: codec.Bool, Shape: []int{2}, Data: []byte{1, 0}})
	if err != nil || !slices.Equal(bools, []bool{true, false}) {
		t.Errorf("got %v, %v, want [true false]", bools, err)
	}
	if got, err := codec.Values[int32](codec.Array([]float32{1})); err == nil {
		t.Errorf("got %v of an array of float32, want an error", got)
	}
	if got, err := codec.Values[int8](codec.Array([]int8{1}, 2)); err == nil {
		t.Errorf("got %v of an array that is too short, want an error", got)
	}
	if got, err := codec.Values[int8](codec.Array[int8](nil)); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v of an empty array", got, err)
	}
}

func TestHalves(t *testing.T) {
	for bits, want := range map[codec.Half]float32{
		0x0000: 0, 0x3c00: 1, 0xc100: -2.5, 0x7bff: 65504, 0x0001: 1.0 / (1 << 24), 0x83ff: -1023.0 / (1 << 24), 0xfc00: float32(math.Inf(-1)),
	} {
		if got := bits.Float32(); got != want {
			t.Errorf("%04x: got %v, want %v", uint16(bits), got, want)
		}
	}
	if got := codec.Half(0x7e00).Float32(); !math.IsNaN(float64(got)) {
		t.Errorf("7e00: got %v, want NaN", got)
	}
	if got := codec.BHalf(0xc020).Float32(); got != -2.5 {
		t.Errorf("c020: got %v, want -2.5", got)
	}
}

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"GetLesson": "get_lesson", "URL": "url", "URLOf": "url_of", "Layer2Rate": "layer2_rate", "ID": "id", "HTTPPort": "http_port",
		"Already_Snake": "already_snake", "a": "a", "ÄndereÖl": "ändere_öl",
	} {
		if got := codec.Snake(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestDeclaredLengthsAreNotTrusted counts what is allocated for a message that
// declares gigabytes.
func TestDeclaredLengthsAreNotTrusted(t *testing.T) {
	var lists []byte
	for range 100 {
		lists = append(lists, 0xdd, 0, 0, 0xf0, 0)
	}
	for name, data := range map[string][]byte{
		"lists in lists": append(lists, make([]byte, 1<<16)...),
		"map":            append([]byte{0xdf, 0, 0, 0x70, 0}, make([]byte, 1<<16)...),
		"string":         {0xdb, 0xff, 0xff, 0xff, 0xff, 0},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var got any
		err := codec.DecodeResult(codec.Msgpack, data, nil, 0, &got)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64*uint64(len(data))+1<<16 {
			t.Errorf("%s: %d bytes made it allocate %d", name, len(data), took)
		}
	}
}
