package runclient

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/actorrpc/wire"
	"github.com/fray-ml/fray/terminal"
)

// What a method declares is shown beside it.
func TestDescribeActor(t *testing.T) {
	methods := []*wire.Method{
		{Name: "add", Signature: "add(by: int) -> int", Retries: 3, RetryExceptions: []string{"KeyError", "lessons.TooHard"}, Doc: "Adds."},
		{Name: "total", Signature: "total() -> int", Idempotent: true},
	}
	for _, test := range []struct {
		json bool
		want []string
	}{
		{false, []string{"add(by: int) -> int  retries 3; retried after KeyError, lessons.TooHard; Adds.", "total() -> int       idempotent\n"}},
		{true, []string{`"retries": 3`, `"retry_exceptions": [`, `"lessons.TooHard"`, `"idempotent": true`}},
	} {
		var out strings.Builder
		if err := DescribeActor(&terminal.Terminal{Stdout: &out}, methods, test.json); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("as JSON %t: got\n%s\nwant %q in it", test.json, out.String(), want)
			}
		}
	}
}
