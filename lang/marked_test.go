package lang

import (
	"testing"

	"github.com/fray-ml/fray/lang/eval"
)

// TestOddConstants: what is read before there are values, and references, may
// be marked, unknown or of another type, and are refused or taken, never more.
func TestOddConstants(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"job \"a\" {\n command = [\"x\"]\n lifecycle {\n prevent_destroy = sensitive(true)\n }\n}",
		"variable \"a\" {\n description = sensitive(\"x\")\n default = sensitive(\"y\")\n sensitive = sensitive(true)\n}",
		"job \"u\" { command = [\"x\"] }\njob \"a\" {\n command = [\"x\"]\n namespace = { addr = job.u.id }\n}",
		"job \"a\" {\n command = [\"x\"]\n namespace = { addr = sensitive(\"namespace.n\") }\n}",
		"job \"a\" {\n command = [\"x\"]\n namespace = { addr = null }\n}",
		"job \"a\" {\n command = [\"x\"]\n namespace = sensitive(namespace.n)\n}\nnamespace \"n\" {}",
		"fray {\n required_version = 1 == 1 ? null : \"x\"\n}",
		"output \"a\" {\n value = 1\n ephemeral = sensitive(false)\n}",
		"check \"c\" {\n assert {\n condition = sensitive(true)\n error_message = sensitive(\"x\")\n }\n}",
		"job \"a\" {\n command = [\"x\"]\n dynamic \"resources\" {\n for_each = [null]\n content {\n cpu = resources.value\n }\n }\n}",
	} {
		_, diags := parseText(t, text).Evaluate(eval.Options{})
		for _, d := range diags {
			if d.Summary == "" || d.Detail == "" {
				t.Errorf("%+v says nothing\n%s", d, text)
			}
		}
	}
}
