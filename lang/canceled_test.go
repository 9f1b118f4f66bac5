package lang

import (
	"testing"

	"github.com/fray-ml/fray/lang/eval"
)

// TestCanceled: whenever an evaluation is canceled, it ends with an error and without a result.
func TestCanceled(t *testing.T) {
	t.Parallel()
	s := parseText(t, `
		variable "a" { default = 1 }
		locals {
			b = var.a
			c = local.b
		}
		job "d" { command = ["x", local.c] }
		job "e" {
			command    = [job.d.id]
			depends_on = [job.d]
		}
		output "f" { value = job.e.id }`)
	asked := 0
	count := func() bool {
		asked++
		return false
	}
	if _, diags := s.Evaluate(eval.Options{Canceled: count}); diags.HasErrors() {
		t.Fatal(diags)
	}
	if asked < 5 {
		t.Fatalf("it was asked %d times only", asked)
	}
	for after := range asked {
		left := after
		config, diags := s.Evaluate(eval.Options{Canceled: func() bool {
			left--
			return left < 0
		}})
		if config != nil || len(diags) != 1 || diags[0].Summary != "Canceled" {
			t.Errorf("canceled after %d of %d: config is nil: %v, %v", after, asked, config == nil, diags)
		}
	}
}
