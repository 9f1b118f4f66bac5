package syntax

import (
	"strings"
	"testing"
)

// Brackets in strings are no levels, whatever quotes those have in them.
func TestJSONNesting(t *testing.T) {
	deep := strings.Repeat("[", MaxNesting+1)
	tests := []struct {
		name, text string
		line       int // where it is nested too deeply, 0: nowhere
	}{
		{"flat", strings.Repeat("[]", MaxNesting+1), 0},
		{"as deep as may be", deep[1:], 0},
		{"deeper", deep, 1},
		{"deeper, further down", "{\"a\": \"x\",\n\"b\":\n" + deep[1:], 3},
		{"in a string", `"` + deep + `"`, 0},
		{"behind a quote in a string", `"\"` + deep + `"`, 0},
		{"behind a string that ends with a backslash", `"\\"` + deep, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := 0
			if diags := CheckJSON([]byte(test.text), "x.json"); len(diags) > 0 {
				got = diags[0].Subject.Start.Line
			}
			if got != test.line {
				t.Errorf("it is nested too deeply in line %d, want %d", got, test.line)
			}
		})
	}
}
