package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/fray-ml/fray/actorrpc/codec"
)

// Large values of programs are carried under the default limit.
func TestLargeValuesAreCarried(t *testing.T) {
	ints, floats := make([]int, 100_000), make([]float64, 1_000_000)
	rows := make([]map[string]any, 50_000)
	for i := range ints {
		ints[i] = i - 50_000
	}
	for i := range floats {
		floats[i] = float64(i) / 3
	}
	for i := range rows {
		rows[i] = map[string]any{"prompt": fmt.Sprint("say ", i), "reward": float64(i), "step": i}
	}
	deep := any("ground")
	for range codec.MaxDepth {
		deep = []any{deep}
	}
	for name, value := range map[string]any{
		"100,000 ints": ints, "a million floats": floats, "50,000 maps": rows, "deep lists": deep,
		"bytes of 50 MB": make([]byte, 50_000_000), "a string of 50 MB": strings.Repeat("a", 50_000_000),
		"an array of 1 MiB": codec.Array(make([]float32, 1<<18)), "100,000 strings": strings.Fields(strings.Repeat("a_prompt_of_some_length ", 100_000)),
	} {
		t.Run(name, func(t *testing.T) {
			args, buffers, err := codec.EncodeArgs(codec.Msgpack, []any{value}, nil)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := codec.DecodeArgs(codec.Msgpack, args, buffers, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decoded.Into([]reflect.Type{reflect.TypeOf(value)})
			if err != nil {
				t.Fatal(err)
			}
			if name != "50,000 maps" && !reflect.DeepEqual(got[0].Interface(), value) {
				t.Error("it is not what was sent")
			}
		})
	}
}

// The error of values that take too much names the limit and what to do.
func TestTooLargeError(t *testing.T) {
	data := append([]byte{0xdc, 0x40, 0}, bytes.Repeat([]byte{0x80}, 0x4000)...)
	var got any
	err := codec.DecodeResult(codec.Msgpack, data, nil, 1<<20, &got)
	over, ok := errors.AsType[*codec.TooLargeError](err)
	if !ok || over.Limit != 1<<20 || !strings.Contains(err.Error(), "more than 1 MiB") || !strings.Contains(err.Error(), "raise max_message_bytes") {
		t.Errorf("got %v, want a TooLargeError of 1 MiB", err)
	}
	if err := codec.DecodeResult(codec.Msgpack, data, nil, 2<<20, &got); err != nil {
		t.Errorf("with twice the memory: %v", err)
	}
	var typed [][64]int
	if err := codec.DecodeResult(codec.Msgpack, append([]byte{0xdc, 0x40, 0}, bytes.Repeat([]byte{0x90}, 0x4000)...), nil, 2<<20, &typed); !errors.As(err, &over) {
		t.Errorf("into large elements: got %v, want a TooLargeError", err)
	}
}
