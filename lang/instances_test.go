package lang

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// TestManyInstances: instances that are decoded on all processors are those that are decoded one
// after the other, as they are where the command calls a function, and so are the mistakes.
func TestManyInstances(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		`["x", "--n=${each.value}", each.key]`,
		`["x", var.secret, "${var.secret}-${each.value}"]`,
		`["x", each.value > 700 ? var.secret : each.key, job.up.address]`,
		`[each.key == "k1500" ? "" : "x"]`,
		`["x", each.key == "k1500" ? null : each.key]`,
		`["x", "--n=${each.value == 1999 ? null : each.key}", each.value == 400 ? [1][2] : each.value]`,
		`each.value == 2 ? null : ["x"]`,
	} {
		decoded := func(noArguments string) ([]schema.Job, []string) {
			config, diags := parseText(t, fmt.Sprintf(`
				variable "secret" {
					default   = "hunter2"
					sensitive = true
				}
				job "up" { command = ["x"] }
				job "many" {
					for_each = { for i in range(2000) : "k${i}" => i }
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
		if diff := cmp.Diff(want, got, equal()); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
		if diff := cmp.Diff(wantDiags, diags); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}
