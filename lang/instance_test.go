package lang

import (
	"testing"

	"github.com/fray-ml/fray/lang/eval"
)

// TestEachOfUnknownValues: only the keys of a for_each must be known and no
// secret; what its values are made into is as they are.
func TestEachOfUnknownValues(t *testing.T) {
	t.Parallel()
	config := mustEvaluate(t, `
		variable "secret" {
			default   = "hunter2"
			sensitive = true
		}
		job "up" { command = ["x"] }
		job "each" {
			for_each = { late = job.up.address, secret = var.secret, plain = "p" }
			command  = ["x", each.key, each.value]
		}`, eval.Options{})
	want := map[string]string{"late": "(known after apply)", "secret": "(sensitive value)", "plain": "p"}
	for _, j := range config.Desired.Jobs {
		key, ok := j.Addr.Key.Str()
		if !ok {
			continue
		}
		if got := j.Command[2].String(); got != want[key] {
			t.Errorf("each.value of %q is %q, want %q", key, got, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("no instances for %v", want)
	}
	for _, forEach := range []string{"toset([job.up.address])", "toset([var.secret])", "sensitive({ a = 1 })", "job.up.ports"} {
		_, diags := parseText(t, "variable \"secret\" {\ndefault = \"s\"\nsensitive = true\n}\njob \"up\" {\ncommand = [\"x\"]\nresources {\nports = [for i in [1] : \"p${i}\" if job.up2.id != \"\"]\n}\n}\njob \"up2\" { command = [\"x\"] }\njob \"each\" {\nfor_each = "+forEach+"\ncommand = [\"x\"]\n}\n").Evaluate(eval.Options{})
		if !diags.HasErrors() {
			t.Errorf("for_each = %s is taken", forEach)
		}
	}
}
