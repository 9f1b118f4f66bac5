package codec_test

import (
	"bytes"
	"reflect"
	"sync"
	"testing"

	"github.com/fray-ml/fray/actorrpc/codec"
)

type shaped struct {
	Zeta  string         `json:"zeta"`
	Alpha int            `json:"alpha,omitempty"`
	Inner *shaped        `json:"inner,omitempty"`
	Names map[string]any `json:"names"`
}

// Many goroutines may encode and decode by the same shapes, and get what a call without them gets.
func TestShapesAreShared(t *testing.T) {
	want := shaped{Zeta: "z", Inner: &shaped{Zeta: "y", Alpha: 2, Names: map[string]any{}}, Names: map[string]any{"zeta": "alpha"}}
	plain, _, err := codec.EncodeResult(codec.Msgpack, want)
	if err != nil {
		t.Fatal(err)
	}
	var shapes codec.Shapes
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				data, buffers, err := shapes.EncodeResult(codec.Msgpack, want)
				if err != nil || !bytes.Equal(data, plain) {
					t.Errorf("%x, %v; want %x", data, err, plain)
					return
				}
				var got shaped
				if err := shapes.DecodeResult(codec.Msgpack, data, buffers, 0, &got); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%+v, %v; want %+v", got, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}
