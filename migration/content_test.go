package migration

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// A read that fails in the middle is an error, and no other content.
func TestSameContent(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // two pieces
	broken := errors.New("the connection broke")
	part := func() io.Reader { return io.MultiReader(bytes.NewReader(large[:1<<20+100]), iotest.ErrReader(broken)) }
	tests := []struct {
		name        string
		left, right io.Reader
		same        bool
		err         error
	}{
		{"the same", bytes.NewReader(large), iotest.HalfReader(bytes.NewReader(large)), true, nil},
		{"empty", bytes.NewReader(nil), bytes.NewReader(nil), true, nil},
		{"shorter", bytes.NewReader(large), bytes.NewReader(large[:1<<20]), false, nil},
		{"longer by a piece", bytes.NewReader(large[:1<<20]), bytes.NewReader(large), false, nil},
		{"other bytes", bytes.NewReader(large), bytes.NewReader(append(bytes.Clone(large[1:]), 'x')), false, nil},
		{"the right breaks", bytes.NewReader(large), part(), false, broken},
		{"the left breaks", part(), bytes.NewReader(large), false, broken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			same, err := sameContent(test.left, test.right)
			if same != test.same || !errors.Is(err, test.err) {
				t.Errorf("got %v, %v, want %v, %v", same, err, test.same, test.err)
			}
		})
	}
}
