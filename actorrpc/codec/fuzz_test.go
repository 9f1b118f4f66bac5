package codec_test

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
)

// FuzzDecode gives the decoder any bytes: it must return, and what it takes must
// go back and forth unchanged.
func FuzzDecode(f *testing.F) {
	file := vectors(f)
	for _, list := range [][]vector{file.Carried, file.Malformed} {
		for _, v := range list {
			f.Add(v.kind() == codec.JSON, v.data(), []byte("buffer"))
		}
	}
	f.Fuzz(func(t *testing.T, asJSON bool, data, buffer []byte) {
		kind := codec.Msgpack
		if asJSON {
			kind = codec.JSON
		}
		_, _ = codec.DecodeArgs(kind, data, [][]byte{buffer}, 0)
		var got any
		if codec.DecodeResult(kind, data, [][]byte{buffer}, 0, &got) != nil {
			return
		}
		again, buffers, err := codec.EncodeResult(kind, got)
		if err != nil {
			t.Fatalf("decoded %#v, which is refused: %v", got, err)
		}
		var twice any
		if err := codec.DecodeResult(kind, again, buffers, 0, &twice); err != nil {
			t.Fatalf("encoded %#v as %x, which is refused: %v", got, again, err)
		}
		last, _, err := codec.EncodeResult(kind, twice)
		if err != nil || string(last) != string(again) {
			t.Fatalf("%#v is %x, and after a turn %x (%v)", got, again, last, err)
		}
	})
}

// FuzzInto gives any arguments to types of every shape: a value or an error.
func FuzzInto(f *testing.F) {
	for _, v := range vectors(f).Carried {
		f.Add(v.data())
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, target := range []any{
			new(int8), new(uint64), new(float32), new(string), new([]byte), new([3]byte), new([]int16), new([2]any), new(map[string]int),
			new(map[int]string), new(trainer), new(outer), new(*settings), new(time.Time), new(codec.NDArray), new(codec.ActorRef),
		} {
			_ = codec.DecodeResult(codec.Msgpack, data, [][]byte{{1, 2, 3, 4}}, 0, target)
		}
	})
}
