package lang

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// blocks draws the blocks of a valid configuration: declarations that refer to each
// other in every direction that is allowed.
func blocks(t *rapid.T) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	names := func(kind string) int { return rapid.IntRange(0, 4).Draw(t, kind) }
	namespaces, pools, locals, jobs, groups := names("namespaces"), names("reservations"), names("locals"), names("jobs"), names("groups")
	for i := range namespaces {
		add("namespace \"n%d\" {\n  max_chips = %d\n}", i, i+1)
	}
	for i := range pools {
		add("reservation \"r%d\" {\n  max {\n    slices = %d\n  }\n}", i, i+20)
	}
	for i := range locals {
		if i == 0 {
			add("locals {\n  l0 = \"x\"\n}")
			continue
		}
		add("locals {\n  l%d = \"${local.l%d}-%d\"\n}", i, rapid.IntRange(0, i-1).Draw(t, "local"), i)
	}
	body := func(i, jobsBefore int) string {
		word := "\"x\""
		if locals > 0 && rapid.Bool().Draw(t, "uses local") {
			word = fmt.Sprintf("local.l%d", rapid.IntRange(0, locals-1).Draw(t, "used local"))
		}
		text := fmt.Sprintf("  command = [%s, \"%d\"]\n", word, i)
		if jobsBefore > 0 && rapid.Bool().Draw(t, "reads job") {
			text += fmt.Sprintf("  args = [job.j%d[0].id]\n", rapid.IntRange(0, jobsBefore-1).Draw(t, "read job"))
		}
		if jobsBefore > 0 && rapid.Bool().Draw(t, "waits") {
			text += fmt.Sprintf("  depends_on = [job.j%d]\n", rapid.IntRange(0, jobsBefore-1).Draw(t, "awaited"))
		}
		if namespaces > 0 && rapid.Bool().Draw(t, "has namespace") {
			text += fmt.Sprintf("  namespace = namespace.n%d\n", rapid.IntRange(0, namespaces-1).Draw(t, "namespace"))
		}
		if pools > 0 && rapid.Bool().Draw(t, "draws") {
			text += fmt.Sprintf("  resources {\n    reservation = reservation.r%d\n  }\n", rapid.IntRange(0, pools-1).Draw(t, "pool"))
		}
		return text
	}
	for i := range jobs {
		add("job \"j%d\" {\n  count = %d\n%s}", i, rapid.IntRange(1, 12).Draw(t, "count"), body(i, i))
	}
	for i := range groups {
		add("job_group \"g%d\" {\n  job \"a\" {\n%s  }\n  job \"b\" {\n    command = [\"b\"]\n  }\n}", i, body(i, jobs))
	}
	if rapid.Bool().Draw(t, "service") {
		add("actor_service \"s\" {\n  replicas = 3\n%s}", body(0, jobs))
	}
	return out
}

// TestOrderIsIrrelevant: the same blocks in another order and in other files
// are the same configuration.
func TestOrderIsIrrelevant(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := blocks(t)
		first := evaluateFiles(t, []string{strings.Join(text, "\n")})
		shuffled := append([]string(nil), text...)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		files := make([]string, rapid.IntRange(1, 4).Draw(t, "files"))
		for _, block := range shuffled {
			i := random.IntN(len(files))
			files[i] += block + "\n"
		}
		if second := evaluateFiles(t, files); first != second {
			t.Fatalf("first:\n%s\nshuffled:\n%s", first, second)
		}
	})
}

// evaluateFiles returns the JSON of what the files desire.
func evaluateFiles(t *rapid.T, files []string) string {
	dir, err := os.MkdirTemp("", "schema")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	for i, text := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.hcl", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, diags := Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, files)
	}
	c, diags := s.Evaluate(eval.Options{})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, files)
	}
	data, err := json.Marshal(c.Desired)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestAddressesAreInOrder: what a configuration desires is in address order,
// whatever the numbers and keys of its instances.
func TestAddressesAreInOrder(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, `
		job "b" {
			count   = 12
			command = ["x"]
		}
		job "a" {
			for_each = toset(["10", "9", "ä", "z", "a b", "\"q\""])
			command  = ["x"]
		}
		job_group "z" {; job "j" { command = ["x"] }; }
		actor_service "a" { command = ["x"] }`, eval.Options{})
	for i := 1; i < len(c.Desired.Jobs); i++ {
		if a, b := c.Desired.Jobs[i-1].Addr, c.Desired.Jobs[i].Addr; a.Compare(b) >= 0 {
			t.Errorf("%s stands before %s", a, b)
		}
		if parsed, err := schema.ParseAddress(c.Desired.Jobs[i].Addr.String()); err != nil || parsed != c.Desired.Jobs[i].Addr {
			t.Errorf("ParseAddress(%s) = %v, %v", c.Desired.Jobs[i].Addr, parsed, err)
		}
	}
}
