package logtime

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/propertytest"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

func second(n int64) time.Time { return time.Unix(n, 0).UTC() }

func TestIndex(t *testing.T) {
	x := Index{{Offset: 10, At: second(1)}, {Offset: 20, At: second(2)}, {Offset: 1 << 40, At: time.Time{}}}
	for _, test := range []struct {
		offset int64
		want   time.Time
	}{{0, time.Time{}}, {9, time.Time{}}, {10, second(1)}, {19, second(1)}, {20, second(2)}, {1<<40 - 1, second(2)}, {1 << 40, time.Time{}}} {
		if got := x.At(test.offset); !got.Equal(test.want) {
			t.Errorf("byte %d was written at %v, want %v", test.offset, got, test.want)
		}
	}
	if got := Parse(x.Bytes()); !slices.Equal(got, x) {
		t.Errorf("it reads back as %v, want %v", got, x)
	}
}

// A crash leaves a torn mark, or zeros where the disk had not written yet.
func TestParseAfterACrash(t *testing.T) {
	x := Index{{Offset: 0, At: second(1)}, {Offset: 20, At: second(2)}}
	for name, rest := range map[string][]byte{"torn": x.Bytes()[:7], "zeros": make([]byte, 40)} {
		if got := Parse(append(x.Bytes(), rest...)); !slices.Equal(got, x) {
			t.Errorf("%s: %v, want %v", name, got, x)
		}
	}
}

// What is read of a file dates each byte of a range as the whole index does.
func TestReadIsAsTheWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var x Index
		offset := int64(0)
		for i := range rapid.IntRange(0, 30).Draw(rt, "marks") {
			offset += rapid.Int64Range(1, 9).Draw(rt, "bytes")
			x = append(x, Mark{Offset: offset, At: second(int64(i + 1))})
		}
		from := rapid.Int64Range(0, offset+5).Draw(rt, "from")
		to := from + rapid.Int64Range(1, 50).Draw(rt, "length")
		data := x.Bytes()
		part, err := Read(bytes.NewReader(data), int64(len(data)), from, to)
		if err != nil {
			rt.Fatal(err)
		}
		next, err := Read(bytes.NewReader(data), int64(len(data)), to, to+20)
		if err != nil {
			rt.Fatal(err)
		}
		part = append(part, next...)
		for at := from; at < to+20; at++ {
			if got, want := part.At(at), x.At(at); !got.Equal(want) {
				rt.Fatalf("byte %d was written at %v, want %v", at, got, want)
			}
		}
	})
}
