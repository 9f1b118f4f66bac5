package codec_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fray-ml/fray/actorrpc/codec"
)

// BenchmarkCall encodes and decodes the arguments of a call; encoding/json is the
// baseline beside it. The megabyte shows in B/op that nothing of it is copied.
func BenchmarkCall(b *testing.B) {
	type settings struct {
		Rate  float64
		Steps int
		Name  string
	}
	for _, c := range []struct {
		name string
		arg  any
	}{
		{"int", 7},
		{"64 bytes", make([]byte, 64)},
		{"1 MiB", make([]byte, 1<<20)},
		{"array of 1 MiB", codec.Array(make([]float32, 1<<18))},
		{"struct", settings{0.5, 3, "adam"}},
	} {
		types := []reflect.Type{reflect.TypeOf(c.arg)}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				args, buffers, err := codec.EncodeArgs(codec.Msgpack, []any{c.arg}, nil)
				if err != nil {
					b.Fatal(err)
				}
				decoded, err := codec.DecodeArgs(codec.Msgpack, args, buffers, 0)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := decoded.Into(types); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data, err := json.Marshal(c.arg)
				if err != nil {
					b.Fatal(err)
				}
				if err := json.Unmarshal(data, reflect.New(types[0]).Interface()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
