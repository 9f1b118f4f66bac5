package lang

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// TestManyInstances: instances that are decoded on all processors are those that are decoded one
// after the other, as they are where the command calls a function, and so are the mistakes.
func TestManyInstances(t *testing.T) {
	t.Parallel()
	for command, mistakes := range map[string]int{
		`["x", "--n=${each.value}", each.key]`:                                                                  0,
		`["x", var.secret, "${var.secret}-${each.value}"]`:                                                      0,
		`["x", each.value > 700 ? var.secret : each.key, job.up.address]`:                                       0,
		`[each.key == "k1500" ? "" : "x"]`:                                                                      1,
		`["x", each.key == "k1500" ? null : each.key]`:                                                          1,
		`["x", "--n=${each.value == 1999 ? null : each.key}", each.value == 400 ? tolist([1])[2] : each.value]`: 2,
		`each.value == 2 ? null : ["x"]`:                                                                        1,
	} {
		decoded := func(noArguments string) ([]schema.Job, []string) {
			config, diags := parseText(t, fmt.Sprintf(`
				variable "secret" {
					default   = "hunter2"
					sensitive = true
				}
				job "up" { command = ["x"] }
				job "many" {
					for_each = merge([for a in [0, 1] : { for i in range(1000) : "k${1000 * a + i}" => 1000 * a + i }]...)
					command  = %s
					args     = %s
				}`, command, noArguments)).Evaluate(eval.Options{})
			var found []string
			for _, d := range diags {
				found = append(found, fmt.Sprint(d.Severity, d.Summary, d.Detail, d.Subject.Start, d.Subject.End))
			}
			if config == nil {
				return nil, found
			}
			return config.Desired.Jobs, found
		}
		want, wantDiags := decoded(`slice([each.key], 0, 0)`)
		got, diags := decoded(`[for key in [each.key] : key if false]`)
		if len(wantDiags) != mistakes || mistakes == 0 && len(want) != 2001 {
			t.Errorf("%s: got %d jobs and %v, want %d mistakes", command, len(want), wantDiags, mistakes)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the jobs differ: %s", command, cmp.Diff(want[:min(len(want), 3)], got[:min(len(got), 3)], equal()))
		}
		if diff := cmp.Diff(wantDiags, diags); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}
