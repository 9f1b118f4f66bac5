package lang

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// readers draws blocks that read values of the jobs of [blocks] and of each
// other in all ways: of one instance or all, through locals, each and groups.
func readers(t *rapid.T, jobs []schema.Address) []string {
	whole := func(a schema.Address) string {
		if a.Group != "" {
			return "job_group." + a.Group + ".job." + a.Name
		}
		return string(a.Kind) + "." + a.Name
	}
	var out, values []string
	value := func() string {
		a := rapid.SampledFrom(jobs).Draw(t, "read")
		forms := []string{
			fmt.Sprintf("jsonencode(%s)", whole(a)),
			fmt.Sprintf("can(%s.id)", whole(a)),
		}
		switch _, counted := a.Key.Int(); {
		case a.Kind == schema.KindActorService:
			forms = append(forms, fmt.Sprintf("join(\",\", %s.endpoints)", whole(a)))
		case counted:
			forms = append(forms, fmt.Sprintf("%s[%s].address", whole(a), strings.Trim(a.Key.String(), "[]")),
				fmt.Sprintf("join(\",\", %s[*].id)", whole(a)), fmt.Sprintf("\"${%s[0].status}\"", whole(a)))
		default:
			forms = append(forms, whole(a)+".address", fmt.Sprintf("jsonencode(%s.addresses)", whole(a)), whole(a)+".id")
		}
		if a.Group != "" {
			forms = append(forms, fmt.Sprintf("join(\",\", [for n, j in job_group.%s.job : \"${n}=${j.id}\"])", a.Group))
		}
		return rapid.SampledFrom(append(forms, values...)).Draw(t, "form")
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "reading locals") {
		name := fmt.Sprintf("v%d", 9-i) // those that read others come first by name
		out = append(out, fmt.Sprintf("locals {\n  %s = %s\n}", name, value()))
		values = append(values, "local."+name, fmt.Sprintf("\"<${local.%s}>\"", name))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "modules") {
		call := fmt.Sprintf("module \"m%d\" {\n  source = \"./m\"\n", i)
		read := fmt.Sprintf("module.m%d.out", i)
		switch rapid.IntRange(0, 2).Draw(t, "called") {
		case 0:
			call += fmt.Sprintf("  in = %s\n}", value())
		case 1:
			call += fmt.Sprintf("  count = 2\n  in = \"${count.index}${%s}\"\n}", value())
			read = rapid.SampledFrom([]string{fmt.Sprintf("module.m%d[1].out", i), fmt.Sprintf("join(\"\", module.m%d[*].out)", i)}).Draw(t, "output")
		case 2:
			call += fmt.Sprintf("  for_each = toset([\"a\"])\n  in = \"${each.key}${%s}\"\n}", value())
			read = fmt.Sprintf("module.m%d[\"a\"].out", i)
		}
		out = append(out, call)
		values = append(values, read)
	}
	if rapid.Bool().Draw(t, "checked") {
		out = append(out, fmt.Sprintf("check \"c\" {\n  assert {\n    condition = can(%s) && length(\"${%s}\") > 12\n    error_message = %s\n  }\n}", value(), value(), value()))
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "readers") {
		repeated, own := "", value()
		switch rapid.IntRange(0, 2).Draw(t, "repeated") {
		case 1:
			repeated, own = "  count = 2\n", fmt.Sprintf("\"${count.index}-${%s}\"", own)
		case 2:
			repeated, own = "  for_each = toset([\"a\", \"b\"])\n", fmt.Sprintf("\"${each.key}-${%s}\"", own)
		}
		labels := ""
		if rapid.IntRange(0, 4).Draw(t, "elsewhere") == 0 { // what is known all along
			labels = fmt.Sprintf("  labels = { l = length([%s]) }\n", value())
		}
		out = append(out, fmt.Sprintf("job \"reads%d\" {\n%s%s  command = [\"x\", %s]\n  args = [%s]\n  environment {\n    env = { A = %s, B = %s }\n  }\n}",
			i, repeated, labels, value(), own, own, value()))
		a := schema.Address{Kind: schema.KindJob, Name: fmt.Sprintf("reads%d", i)}
		if repeated == "" {
			jobs = append(jobs, a)
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "outputs") {
		out = append(out, fmt.Sprintf("output \"o%d\" {\n  value = %s\n}", i, value()))
	}
	return out
}

// moduleText is a module that hands values in and out, through what it runs.
const moduleText = `
	variable "in" {
		type = string
	}
	locals {
		in = "<${var.in}>"
	}
	job "inner" {
		command = ["x", local.in]
		lifecycle {
			postcondition {
				condition     = length(self.id) < 100
				error_message = self.id
			}
		}
	}
	job_group "g" {
		job "a" {
			command = ["y", job.inner.address]
		}
	}
	output "out" {
		value = "${local.in} ${job.inner.id} ${job_group.g.job.a.address}"
		precondition {
			condition     = job.inner.id != "never"
			error_message = "It is never."
		}
	}
`

// TestRefineIsEvaluate: whatever becomes known in whatever order, refining finds
// what evaluating everything would.
func TestRefineIsEvaluate(t *testing.T) {
	t.Parallel()
	parts := 0
	rapid.Check(t, func(t *rapid.T) {
		text := append(blocks(t), "job \"single\" {\n  command = [\"x\"]\n}")
		source := parseBlocks(t, text)
		base, diags := source.Evaluate(eval.Options{})
		if diags.HasErrors() {
			t.Fatalf("evaluate: %v", diags)
		}
		jobs := addresses(base)
		text = append(text, readers(t, jobs)...)
		source = parseBlocks(t, text)
		v, diags := source.Begin(eval.Options{})
		if diags.HasErrors() {
			t.Skip(diags) // the plan would have reported it
		}
		jobs = addresses(v.Config())
		known := map[schema.Address]schema.Computed{}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			before, news := v.Config(), map[schema.Address]schema.Computed{}
			for range rapid.IntRange(1, 3).Draw(t, "values") {
				news[rapid.SampledFrom(jobs).Draw(t, "known")] = computedValues(t)
			}
			maps.Copy(known, news)
			want, wantDiags := source.Evaluate(eval.Options{Computed: known})
			found, diags := v.Refine(news)
			if got, want := diags.HasErrors(), wantDiags.HasErrors(); got != want {
				t.Fatalf("refine failed: %t (%v), evaluate: %t (%v)\n%s", got, diags, want, wantDiags, strings.Join(text, "\n"))
			}
			if diags.HasErrors() {
				return
			}
			if diff := cmp.Diff(want, v.Config(), equal()); diff != "" {
				t.Fatalf("config (-evaluate +refine):\n%s\n%s", diff, strings.Join(text, "\n"))
			}
			if found.Whole == nil {
				parts++
				if diff := cmp.Diff(want.Desired.Jobs, replaced(before.Desired.Jobs, found.Jobs), equal()); diff != "" {
					t.Fatalf("jobs that changed (-evaluate +refine):\n%s\n%s", diff, strings.Join(text, "\n"))
				}
			}
		}
	})
	if parts == 0 {
		t.Error("everything was evaluated every time")
	}
}

// TestRefine checks what is evaluated again for a value of job.a.
func TestRefine(t *testing.T) {
	t.Parallel()
	const a = `job "a" { command = ["x"] }
	`
	tests := map[string]struct {
		src   string
		jobs  []string // that changed
		whole bool
		fails string // part of the diagnostic
	}{
		"without a reader":      {src: a + `job "b" { command = ["x"] }`},
		"command":               {src: a + `job "b" { command = ["x", job.a.address] }`, jobs: []string{"job.b"}},
		"known already":         {src: a + `job "b" { command = ["x", job.a.name] }`},
		"some instances":        {src: a + `job "b" {; count = 3; command = ["x", count.index == 1 ? job.a.address : "-"]; }`, jobs: []string{"job.b[1]"}},
		"locals of locals":      {src: a + `locals {; a = local.b; b = local.c; c = job.a.address; };job "b" {; command = ["x"]; args = [local.a]; }`, jobs: []string{"job.b"}},
		"group as a whole":      {src: a + `job_group "g" {; job "in" { command = ["x"] }; };job "b" {; command = ["x"]; environment { env = { G = join(",", [for j in job_group.g.job : j.id]) } }; }`, jobs: []string{"job.b"}},
		"output alone":          {src: a + `output "o" { value = job.a.address }`},
		"label known all along": {src: a + `job "b" {; command = ["x"]; labels = { l = job.a.name }; }`, whole: true},
		"group known all along": {src: a + `job_group "g" {; same_zone = job.a.name == "a"; job "in" { command = ["x"] }; }`, whole: true},
		"wrong word":            {src: a + `job "b" { command = ["x", tonumber(job.a.address)] }`, fails: "cannot convert"},
		"wrong local":           {src: a + `locals { n = tonumber(job.a.address) };job "b" { command = ["x", local.n] }`, fails: "cannot convert"},
		"wrong output":          {src: a + `output "o" { value = tonumber(job.a.address) }`, fails: "cannot convert"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, diags := parseText(t, tt.src).Begin(eval.Options{})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			known := schema.Computed{ID: "1", Addresses: []string{"ten"}}
			in := schema.Address{Kind: schema.KindJob, Group: "g", Name: "in"}
			found, diags := v.Refine(map[schema.Address]schema.Computed{job("a"): known, in: known})
			if tt.fails != "" {
				if !diags.HasErrors() || !strings.Contains(diags.Error(), tt.fails) {
					t.Errorf("refine: %v, want an error with %q", diags, tt.fails)
				}
				known.Addresses = []string{"10"}
				if found, diags = v.Refine(map[schema.Address]schema.Computed{job("a"): known}); diags.HasErrors() || found.Whole == nil {
					t.Errorf("refine after an error: %v, %v, want the whole configuration", found.Whole, diags)
				}
				return
			}
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if got := found.Whole != nil; got != tt.whole {
				t.Errorf("evaluated everything: %t, want %t", got, tt.whole)
			}
			var jobs []string
			for _, j := range found.Jobs {
				jobs = append(jobs, j.Addr.String())
			}
			if !slices.Equal(jobs, tt.jobs) {
				t.Errorf("changed: %q, want %q", jobs, tt.jobs)
			}
			if found, _ := v.Refine(map[schema.Address]schema.Computed{job("a"): known, in: known}); found.Whole != nil || len(found.Jobs) > 0 {
				t.Errorf("the same values again: %+v, want nothing", found)
			}
		})
	}
}

// TestReads: values are read directly, through locals and with a whole group.
func TestReads(t *testing.T) {
	t.Parallel()
	v, diags := parseText(t, `
		job "a" {; count = 2; command = ["x"]; }
		job "b" { command = ["x"] }
		job "c" { command = ["x"] }
		job_group "g" {; job "in" { command = ["x"] }; }
		locals { b = job.b.id }
		job "r" { command = ["x", job.a[0].id, local.b, jsonencode(job_group.g)] }
		output "o" { value = job.c.id }`).Begin(eval.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, a := range addresses(v.Config()) {
		if got, want := v.Reads(a), a.Name != "c" && a.Name != "r"; got != want {
			t.Errorf("Reads(%s) = %t, want %t", a, got, want)
		}
	}
}

// TestRefinedSeals: the secrets of what is taken in are sealed, and the
// configuration that it is taken into stays as it is.
func TestRefinedSeals(t *testing.T) {
	t.Parallel()
	before := schema.Desired{Jobs: []schema.Job{{Addr: job("a")}, {Addr: job("b"), Labels: map[string]string{"l": "x"}}}}
	got, err := before.Refined([]schema.Job{{Addr: job("b"), Command: []schema.Text{schema.Secret("s")}}}, reversing{})
	if err != nil {
		t.Fatal(err)
	}
	if b := got.Jobs[1]; len(b.Command) != 1 || !isSealed(b.Command[0]) || b.Labels["l"] != "x" {
		t.Errorf("refined job = %+v, want a sealed command and the labels", b)
	}
	if before.Jobs[1].Command != nil {
		t.Errorf("the job before has the command %v, want none", before.Jobs[1].Command)
	}
	if _, err := before.Refined([]schema.Job{{Addr: job("c")}}, reversing{}); err == nil {
		t.Error("a job that is not there was refined")
	}
}

func replaced(jobs, by []schema.Job) []schema.Job {
	out := slices.Clone(jobs)
	for _, j := range by {
		out[slices.IndexFunc(out, func(other schema.Job) bool { return other.Addr == j.Addr })] = j
	}
	return out
}

func addresses(c *schema.Config) []schema.Address {
	var found []schema.Address
	for i := range c.Desired.Jobs {
		found = append(found, c.Desired.Jobs[i].Addr)
	}
	return found
}

func computedValues(t *rapid.T) schema.Computed {
	word := rapid.SampledFrom([]string{"", "a", "b"})
	c := schema.Computed{ID: word.Draw(t, "id"), Status: schema.JobStatus(word.Draw(t, "status"))}
	for range rapid.IntRange(0, 2).Draw(t, "addresses") {
		c.Addresses = append(c.Addresses, "h"+word.Draw(t, "address"))
	}
	if rapid.Bool().Draw(t, "has slices") {
		c.Slices = []string{"s"}
	}
	if rapid.Bool().Draw(t, "has ports") {
		c.Ports = map[string]int{"http": rapid.IntRange(1, 3).Draw(t, "port")}
	}
	return c
}

func parseBlocks(t *rapid.T, text []string) *Source {
	dir, err := os.MkdirTemp("", "schema")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(strings.Join(text, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "m"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m", "main.hcl"), []byte(moduleText), 0o600); err != nil {
		t.Fatal(err)
	}
	s, diags := Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, text)
	}
	return s
}
