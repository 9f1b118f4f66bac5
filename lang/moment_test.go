package lang

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/funcs"
)

// TestRandomValuesOfInstances: what is chosen at random is another value for each instance,
// also where a template does so that an expression renders, and the same whenever it is
// evaluated. A local has one value.
func TestRandomValuesOfInstances(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "id.tpl")
	if err := os.WriteFile(file, []byte("${uuid()}"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := `
		locals { one = templatefile("` + file + `", {}) }
		job "counted" {
			count   = 3
			command = ["x", uuid(), templatefile("` + file + `", {}), templatestring("$${uuid()}", {}), bcrypt("x", 4)]
			environment { env = { A = upper(templatefile("` + file + `", {})) } }
		}
		job "keyed" {
			for_each = toset(["a", "b"])
			command  = ["x", uuid(), templatefile("` + file + `", {}), templatestring("$${uuid()}", {}), bcrypt("x", 4)]
			environment { env = { A = upper(templatefile("` + file + `", {})) } }
		}
		job "shared" {
			count   = 2
			command = ["x", local.one, templatefile("` + file + `", {}) == "" ? "" : "y"]
		}`
	opts := eval.Options{Moment: funcs.Moment{Planned: time.Unix(1, 0), Applied: time.Unix(2, 0), Seed: "s"}}
	first, again := mustEvaluate(t, source, opts), mustEvaluate(t, source, opts)
	seen, values := map[string]bool{}, 0
	for i, j := range first.Desired.Jobs {
		if j.Addr.Name == "shared" {
			if word := j.Command[1]; word.IsUnknown() || word != first.Desired.Jobs[len(first.Desired.Jobs)-1].Command[1] {
				t.Errorf("%s has %s of a local; want what the other instance has", j.Addr, word)
			}
			continue
		}
		for n, word := range append(j.Command[1:], j.Environment.Env["A"]) {
			seen[word.String()] = true
			values++
			if n < 4 && word != again.Desired.Jobs[i].Command[1+n] {
				t.Errorf("%s has %s, and then %s", j.Addr, word, again.Desired.Jobs[i].Command[1+n])
			}
		}
	}
	if len(seen) != values || values != 25 {
		t.Errorf("got %d different values of %d, want 25", len(seen), values)
	}
}
