package query

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/outline"
)

const around = `
variable "corpus" {
  description = "where the text is"
}
locals {
  size = 3
}
module "pool" {
  source = "./pool"
}
data "accelerators" "small" {
}
namespace "prod" {
}
job_group "rl" {
  job "learner" {
    command = ["x"]
  }
  job "actor" {
    command = ["x"]
  }
}
job "prepare" {
  command = ["x"]
}
`

const pool = `
variable "slices" {
  type = number
}
output "names" {
  value = ["🚀"]
}
output "addr" {
  value = 1
}
`

// at is a query in a file with a mark | at the place, beside the file of around.
func at(t *testing.T, name, text string) *Query {
	t.Helper()
	offset := strings.Index(text, "|")
	if offset < 0 {
		t.Fatalf("no place is marked in %q", text)
	}
	language := lang.Describe("test")
	file := outline.Parse(name, []byte(text[:offset]+text[offset+1:]))
	return &Query{
		File: file, Offset: offset, Language: &language,
		Files: outline.Directory{Files: []*outline.File{outline.Parse("around.hcl", []byte(around)), file}},
		Module: func(source string) outline.Directory {
			if source != "./pool" {
				return outline.Directory{}
			}
			return outline.Directory{Files: []*outline.File{outline.Parse("pool/main.hcl", []byte(pool))}}
		},
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string // among the offers
		never      []string
	}{
		{"blocks", "|", []string{"job", "job_group", "variable", "provider", "moved"}, []string{"resources", "command", "dynamic"}},
		{"a block begun", "jo|", []string{"job", "job_group"}, []string{"variable"}},
		{"attributes", "job \"a\" {\n  |\n}", []string{"command", "resources", "count", "depends_on", "dynamic"}, []string{"variable", "tpu"}},
		{"attributes that are there", "job \"a\" {\n  command = []\n  |\n}", []string{"args", "resources"}, []string{"command"}},
		{"on one line", `job "a" { |`, []string{"command"}, nil},
		{"after an attribute on one line", `job "a" { command = [] }` + "\n|", []string{"job"}, []string{"command"}},
		{"a nested block", "job \"a\" {\n  resources {\n    t|\n  }\n}", []string{"tpu"}, []string{"cpu", "command"}},
		{"a dynamic block", "job \"a\" {\n  dynamic \"health_check\" {\n    content {\n      |\n", []string{"http", "tcp"}, nil},
		{"the label of dynamic", "job \"a\" {\n  dynamic \"|\n", []string{"health_check", "resources"}, nil},
		{"variants", `provider "|`, []string{"local", "gcp"}, []string{"prod"}},
		{"kinds of data", `data "|"`, []string{"outputs", "reservation", "accelerators"}, nil},
		{"no label of a job", `job "|"`, nil, []string{"local", "prepare"}},
		{"by the variant", "provider \"gcp\" {\n  |", []string{"project", "zones", "offer"}, []string{"slices"}},
		{"TPU types", "job \"a\" {\n  resources {\n    tpu = \"v5lite|\"\n  }\n}", []string{"v5litepod-16"}, []string{"v4-8", "local"}},
		{"TPU types without quotes", "job \"a\" {\n  resources {\n    tpu = |\n  }\n}", []string{`"v5litepod-16"`, "var"}, nil},
		{"zones", "job \"a\" {\n  resources {\n    zones = [\"us-|\"]\n  }\n}", []string{"us-central1-a"}, []string{"europe-west4-b"}},
		{"regions", "job \"a\" {\n  resources {\n    regions = [\"|\"]\n", []string{"us-central1", "europe-west4"}, []string{"us-central1-a"}},
		{"a closed set", "job \"a\" {\n  band = \"|\"\n}", []string{"production", "interactive", "batch"}, nil},
		{"a bool", "variable \"a\" {\n  sensitive = |\n}", []string{"true", "false"}, []string{"var"}},
		{"a type", "variable \"a\" {\n  type = |\n}", []string{"string", "list()"}, []string{"var"}},
		{"roots", "job \"a\" {\n  command = [|]\n}", []string{"var", "local", "job", "upper", "data"}, []string{"count", "each", "self"}},
		{"count", "job \"a\" {\n  count = 2\n  command = [c|]\n}", []string{"count", "concat"}, []string{"each"}},
		{"variables", "output \"a\" {\n  value = var.|\n}", []string{"corpus"}, []string{"size", "slices"}},
		{"in a template", "output \"a\" {\n  value = \"${local.|\n}", []string{"size"}, []string{"corpus"}},
		{"text of a template", "output \"a\" {\n  value = \"var.|\"\n}", nil, []string{"corpus"}},
		{"jobs", "output \"a\" {\n  value = job.|\n}", []string{"prepare"}, []string{"learner"}},
		{"attributes of a job", "output \"a\" {\n  value = job.prepare.|\n}", []string{"id", "status", "addresses"}, nil},
		{"of an instance", "output \"a\" {\n  value = job.prepare[0].|\n}", []string{"id"}, nil},
		{"of a group", "output \"a\" {\n  value = job_group.rl.|\n}", []string{"job", "name"}, nil},
		{"jobs of a group", "output \"a\" {\n  value = job_group.rl.job.|\n}", []string{"actor", "learner"}, []string{"prepare"}},
		{"of a job of a group", "output \"a\" {\n  value = job_group.rl.job.actor.|\n}", []string{"id"}, nil},
		{"outputs of a module", "output \"a\" {\n  value = module.pool.|\n}", []string{"names", "addr"}, []string{"slices"}},
		{"arguments of a module", "module \"two\" {\n  source = \"./pool\"\n  |\n}", []string{"slices", "count"}, []string{"source"}},
		{"kinds of data there are", "output \"a\" {\n  value = data.|\n}", []string{"accelerators"}, []string{"outputs"}},
		{"data", "output \"a\" {\n  value = data.accelerators.|\n}", []string{"small"}, nil},
		{"attributes of data", "output \"a\" {\n  value = data.accelerators.small.|\n}", []string{"types"}, nil},
		{"a namespace", "job \"a\" {\n  namespace = |\n}", []string{"namespace.prod"}, nil},
		{"dependencies", "job \"a\" {\n  depends_on = [|]\n}", []string{"job.prepare", "job_group.rl", "module.pool"}, nil},
		{"a comment", "# jo|\n", nil, []string{"job"}},
		{"a heredoc", "output \"a\" {\n  value = <<E\n  va|\nE\n}", nil, []string{"var"}},
		{"behind a broken block", "job \"b\" {\n  command = [\n\njob \"a\" {\n  comm|\n}", []string{"command"}, nil},
		{"within emoji", "output \"🚀\" {\n  value = \"🚀🚀${var.|}🚀\"\n}", []string{"corpus"}, nil},
		{"self", "job_group \"g\" {\n  job \"a\" {\n    lifecycle {\n      postcondition {\n        condition = self.|\n", []string{"id", "status"}, []string{"job"}},
		{"a number", "output \"a\" {\n  value = 1.|\n}", nil, []string{"corpus"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := at(t, "main.hcl", tt.text)
			items, _ := q.Complete()
			var labels []string
			for _, item := range items {
				labels = append(labels, item.Label)
				if !utf8.Valid(q.File.Text[item.From:item.To]) || item.From > q.Offset || item.To < q.Offset && item.Kind != ItemBlock {
					t.Errorf("%s replaces the bytes %d to %d, the place is %d", item.Label, item.From, item.To, q.Offset)
				}
			}
			for _, want := range tt.want {
				if !slices.Contains(labels, want) {
					t.Errorf("%q is not among %q", want, labels)
				}
			}
			for _, never := range tt.never {
				if slices.Contains(labels, never) {
					t.Errorf("%q is among %q", never, labels)
				}
			}
		})
	}
}

func TestCompleteTestFile(t *testing.T) {
	t.Parallel()
	items, _ := at(t, "a.fraytest.hcl", "|").Complete()
	var labels []string
	for _, item := range items {
		labels = append(labels, item.Label)
	}
	if !slices.Contains(labels, "run") || slices.Contains(labels, "job") {
		t.Errorf("a test file offers %q", labels)
	}
}

// TestCompleteBounds: many names are not offered at once.
func TestCompleteBounds(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range maxItems + 100 {
		text.WriteString("variable \"v" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + "\" {}\n")
	}
	text.WriteString("output \"a\" {\n  value = var.|\n}")
	items, more := at(t, "main.hcl", text.String()).Complete()
	if len(items) > maxItems || len(items) == 0 {
		t.Errorf("%d items, more: %v", len(items), more)
	}
}

func TestHover(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, want string
	}{
		{"a block", "jo|b \"a\" {\n}", "a command run as one gang"},
		{"an attribute", "job \"a\" {\n  prio|rity = 1\n}", "default: 0"},
		{"a closed set", "job \"a\" {\n  ba|nd = \"batch\"\n}", "`\"production\"`"},
		{"a variable", "output \"a\" {\n  value = var.cor|pus\n}", "where the text is"},
		{"a local", "output \"a\" {\n  value = local.si|ze\n}", "size = 3"},
		{"a root", "output \"a\" {\n  value = va|r.corpus\n}", "var.NAME"},
		{"a function", "output \"a\" {\n  value = upp|er(\"a\")\n}", "upper(str: string): string"},
		{"a TPU type", "job \"a\" {\n  resources {\n    tpu = \"v5litepod-|16\"\n", "16 chips, 4 hosts, 4x4"},
		{"an output of a module", "output \"a\" {\n  value = module.pool.na|mes\n}", "pool/main.hcl line 5"},
		{"an argument", "module \"b\" {\n  source = \"./pool\"\n  slic|es = 1\n}", "type = number"},
		{"a provider", "provider \"gc|p\" {\n}", "Google Cloud project"},
		{"a job of a group", "output \"a\" {\n  value = job_group.rl.job.act|or.id\n}", `job "actor"`},
		{"nothing", "output \"a\" {\n  value = nothi|ng\n}", ""},
		{"a text", "output \"a\" {\n  value = \"nothi|ng\"\n}", "may be known only after apply"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, from, to := at(t, "main.hcl", tt.text).Hover()
			if !strings.Contains(doc, tt.want) || (tt.want == "") != (doc == "") {
				t.Errorf("got %q at %d to %d, want %q in it", doc, from, to, tt.want)
			}
		})
	}
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, file, want string // the text that is selected
	}{
		{"a variable", "output \"a\" {\n  value = \"${var.cor|pus}\"\n}", "around.hcl", `"corpus"`},
		{"from its root", "output \"a\" {\n  value = va|r.corpus\n}", "around.hcl", `"corpus"`},
		{"a local", "output \"a\" {\n  value = local.si|ze\n}", "around.hcl", "size"},
		{"a job", "output \"a\" {\n  value = job.prepare.i|d\n}", "around.hcl", `"prepare"`},
		{"an instance", "output \"a\" {\n  value = job.prepare[0].i|d\n}", "around.hcl", `"prepare"`},
		{"a group", "output \"a\" {\n  value = job_group.r|l.job.actor.id\n}", "around.hcl", `"rl"`},
		{"a job of a group", "output \"a\" {\n  value = job_group.rl.job.act|or.id\n}", "around.hcl", `"actor"`},
		{"data", "output \"a\" {\n  value = data.accelerators.sm|all.types\n}", "around.hcl", `"small"`},
		{"a module", "output \"a\" {\n  value = module.po|ol.names\n}", "around.hcl", `"pool"`},
		{"an output of a module", "output \"a\" {\n  value = module.pool.na|mes\n}", "pool/main.hcl", `"names"`},
		{"an argument", "module \"b\" {\n  source = \"./pool\"\n  slic|es = 1\n}", "pool/main.hcl", `"slices"`},
		{"a source", "module \"b\" {\n  source = \"./po|ol\"\n}", "pool/main.hcl", ""},
		{"in depends_on", "job \"b\" {\n  depends_on = [job.prep|are]\n}", "around.hcl", `"prepare"`},
		{"in the same file", "variable \"🚀x\" {}\nvariable \"here\" {}\noutput \"a\" {\n  value = var.he|re\n}", "main.hcl", `"here"`},
		{"nothing", "output \"a\" {\n  value = var.noth|ing\n}", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := at(t, "main.hcl", tt.text).Definition()
			switch {
			case ok != (tt.file != ""):
				t.Errorf("found: %v", ok)
			case !ok:
			case got.File.Name != tt.file || string(got.File.Text[got.From:got.To]) != tt.want:
				t.Errorf("got %q of %s, want %q of %s", got.File.Text[got.From:got.To], got.File.Name, tt.want, tt.file)
			}
		})
	}
}

func TestSymbols(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range Symbols(outline.Parse("around.hcl", []byte(around))) {
		names = append(names, s.Name)
		for _, child := range s.Children {
			names = append(names, " "+child.Name)
		}
	}
	want := []string{
		"var.corpus", "local.size", "module.pool", "data.accelerators.small", "namespace.prod",
		"job_group.rl", " job_group.rl.job.learner", " job_group.rl.job.actor", "job.prepare",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
	}
}

// TestPrefixes: at each place of each example, and of what is before it alone, all questions
// have an answer.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob("../../examples/*.hcl")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	language := lang.Describe("test")
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole := outline.Parse("main.hcl", text)
		for offset := range len(text) + 1 {
			files := []*outline.File{whole}
			if offset%13 == 0 {
				files = append(files, whole.Edit(outline.Edit{Start: offset, End: len(text)}))
			}
			for _, f := range files {
				q := &Query{File: f, Offset: offset, Files: outline.Directory{Files: []*outline.File{f}}, Language: &language}
				items, _ := q.Complete()
				for _, item := range items {
					if item.From < 0 || item.From > item.To || item.To > len(f.Text) {
						t.Fatalf("%s: %q replaces %d to %d of %d at %d", path, item.Label, item.From, item.To, len(f.Text), offset)
					}
				}
				if _, from, to := q.Hover(); from < 0 || to > len(f.Text) {
					t.Fatalf("%s: a text for %d to %d at %d", path, from, to, offset)
				}
				q.Definition()
				Symbols(f)
			}
		}
	}
}
