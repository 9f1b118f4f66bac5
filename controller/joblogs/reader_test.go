package joblogs

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func BenchmarkMonitor(b *testing.B) {
	const chunks = 256
	line := append(bytes.Repeat([]byte("x"), 127), '\n')
	chunk := bytes.Repeat(line, 2048)
	s := storetest.NewMemory()
	for i := range chunks {
		if _, err := s.Put(b.Context(), store.LogKey("job", 1, 0, i), chunk, store.Any); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(chunks * len(chunk)))
	for b.Loop() {
		to := make(chan piece)
		r := &logReader{Source: &Source{Store: s}, id: "job", attempt: 1, to: to}
		go func() {
			if err := r.fromStore(b.Context()); err != nil {
				b.Error(err)
			}
			close(to)
		}()
		n := 0
		for p := range to {
			n += len(p.data)
		}
		if n != chunks*len(chunk) {
			b.Fatalf("%d bytes", n)
		}
	}
}

func TestCursors(t *testing.T) {
	for _, c := range []cursor{{}, {attempt: 3}, {attempt: 3, done: true}, {attempt: 2, offsets: []int64{0, 1 << 40, 7}}} {
		got, err := parseCursor(c.bytes())
		if err != nil || got.attempt != c.attempt || got.done != c.done || fmt.Sprint(got.offsets) != fmt.Sprint(c.offsets) {
			t.Errorf("parseCursor(%+v) = %+v, %v", c, got, err)
		}
	}
	for _, data := range []string{"\x00", "\x01", "\x01\x03", "\x01\x03\x02", "\x01\x03\x01\x00", "\x01\x03\x00\xff", "\x01\xff\xff\xff\xff\xff\x00\x00", "\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if got, err := parseCursor([]byte(data)); err == nil {
			t.Errorf("parseCursor(%q) = %+v, want an error", data, got)
		}
	}
}

// TestLongLines: a line without an end is handed on in parts rather than kept.
func TestLongLines(t *testing.T) {
	to := make(chan piece, 10)
	r := &logReader{to: to}
	long := bytes.Repeat([]byte("x"), maxLine)
	for _, data := range [][]byte{[]byte("a\n"), long, []byte("yy"), []byte("z\n")} {
		if err := r.take(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	close(to)
	var sizes []int
	for p := range to {
		sizes = append(sizes, len(p.data))
	}
	if want := fmt.Sprint([]int{2, maxLine + 2, 2}); fmt.Sprint(sizes) != want {
		t.Errorf("pieces of %v bytes, want %s", sizes, want)
	}
	if r.next != int64(maxLine+6) {
		t.Errorf("next %d, want %d", r.next, maxLine+6)
	}
}
