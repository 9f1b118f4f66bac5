package across

import (
	"fmt"
	"strings"
	"testing"
)

// Streams are the same between all languages: their items, their ends, and what leaving one does.
func TestStreams(t *testing.T) {
	numbers := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	tests := []struct {
		name  string
		order order
		want  string
	}{
		{"all items", order{Method: "count", Args: "[[3000],{}]"}, numbers(3000)},
		{"none", order{Method: "count", Args: "[[0],{}]"}, "[]"},
		{"an error at the end", order{Method: "dry", Args: "[[3],{}]"}, "[0,1,2] then application: the well is dry"},
		{"an error at once", order{Method: "dry", Args: "[[0],{}]"}, "[] then application: the well is dry"},
		{"large items", order{Method: "blobs", Args: "[[20,1000000],{}]"}, "[" + strings.Repeat("1000000,", 19) + "1000000]"},
		{"items that are too large", order{Method: "blobs", Args: "[[2,70000000],{}]"}, "[] then too_large: an item of the stream is"},
		{"leaving an endless one", order{Method: "count", Args: "[[1000000000000],{}]", Leave: 10}, numbers(10)},
		{"a bad argument", order{Method: "count", Args: `[["x"],{}]`}, "then bad_arguments: want int, got string"},
	}
	pairs(t, func(t *testing.T, c caller, s *server) {
		total := order{Do: "call", Address: s.address, Method: "total", Args: "[[],{}]"}
		before := c.do(t, total).Value
		for _, test := range tests {
			o := test.order
			o.Do, o.Address = "stream", s.address
			if got := c.do(t, o); !strings.Contains(got.String(), test.want) {
				t.Errorf("%s: got %s, want %s", test.name, clip(got.String()), clip(test.want))
			}
		}
		// Each of the generators has ended, or this call would wait.
		var first, last int
		_, err := fmt.Sscan(before+" "+c.do(t, total).Value, &first, &last)
		if err != nil || last-first != 3 {
			t.Errorf("%d and then %d generators had ended, %v; want 3 more", first, last, err)
		}
	})
}
