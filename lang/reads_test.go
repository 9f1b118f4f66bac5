package lang

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// An attribute reads the variables of the root that its value comes from, whatever they
// go through on the way, and no others.
func TestReadsOfVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "main.hcl"), []byte(`
variable "steps" { type = number }
variable "rate" { type = number }
variable "n" { type = number }
variable "names" { type = set(string) }
variable "unused" { default = 1 }
variable "token" {
  type      = string
  sensitive = true
}
variable "probe" { default = [] }
variable "zones" { default = ["z"] }

locals {
  words = ["train", "--steps=${var.steps}"]
  all   = concat(local.words, [format("%d", var.rate)])
}

provider "local" {
  max_slices = 9
}

job "direct" { command = ["x", "${var.steps}"] }
job "locals" { command = local.all }
job "functions" { command = [jsonencode({ s = max(var.steps, 2) })] }
job "none" { command = ["x"] }
job "counted" {
  count   = var.n
  command = ["x", "${count.index}"]
  labels  = { fixed = "a" }
}
job "each" {
  for_each = var.names
  command  = ["x", each.key]
}
job "env" {
  command = ["x"]
  environment {
    env = {
      STEPS = var.steps
      TOKEN = var.token
      PLAIN = "1"
    }
  }
}
job "merged" {
  command = ["x"]
  environment {
    env = merge({ STEPS = var.steps }, { PLAIN = var.rate })
  }
}
job "dynamic" {
  command = ["x"]
  dynamic "health_check" {
    for_each = var.probe
    content {
      exec     = [health_check.value]
      interval = "${var.rate}s"
    }
  }
}
job "project" {
  command = ["x"]
  environment {
    project = "${path.module}/m${var.n}"
  }
}
job_group "g" {
  namespace = "ns${var.n}"
  job "in" { command = ["x", var.steps] }
}
module "m" {
  source = "./m"
  count  = 2
  steps  = var.steps + count.index
  rate   = 3
}
module "out" {
  source = "./m"
  steps  = 1
  rate   = var.rate
}
job "output" { command = ["x", module.out.both, module.m[0].fixed] }
job "outputs" { command = [jsonencode(module.m)] }
job "peer" { command = [job.direct.id] }
`))
	writeFile(t, filepath.Join(dir, "m", "m.hcl"), []byte(`
variable "steps" {}
variable "rate" {}
variable "unset" { default = 1 }
locals { args = ["${var.steps}"] }
job "a" {
  command = concat(["x"], local.args)
  labels  = { rate = var.rate, unset = var.unset }
}
output "both" { value = "${var.steps} ${var.rate}" }
output "fixed" { value = 1 }
`))
	src, diags := Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	r := src.Reads()
	for _, c := range []struct{ addr, path, want string }{
		{"job.direct", "command", "steps"},
		{"job.locals", "command", "rate steps"},
		{"job.functions", "command", "steps"},
		{"job.none", "command", ""},
		{"job.gone", "command", ""},
		{"job.counted[1]", "command", "n"},
		{"job.counted[1]", "labels.fixed", ""},
		{`job.each["a"]`, "command", "names"},
		{"job.env", "environment.env.STEPS", "steps"},
		{"job.env", "environment.env.TOKEN", "token"},
		{"job.env", "environment.env.PLAIN", ""},
		{"job.env", "environment.env.GONE", ""},
		{"job.merged", "environment.env.PLAIN", "rate steps"},
		{"job.dynamic", "health_check.exec", "probe"},
		{"job.dynamic", "health_check.interval", "probe rate"},
		{"job.dynamic", "stop_grace", ""},
		{"job.project", "environment.project", "n"},
		{"job.project", "environment.bundle", "n"},
		{"job_group.g", "namespace", "n"},
		{"job_group.g.job.in", "namespace", "n"},
		{"job_group.g.job.in", "command", "steps"},
		{"module.m[1].job.a", "command", "steps"},
		{"module.m[1].job.a", "labels.rate", ""},
		{"module.m[1].job.a", "labels.unset", ""},
		{"module.out.job.a", "labels.rate", "rate"},
		{"module.out.job.a", "command", ""},
		{"module.gone.job.a", "command", ""},
		{"job.output", "command", "rate"},
		{"job.outputs", "command", "steps"},
		{"job.peer", "command", ""},
	} {
		addr, err := schema.ParseAddress(c.addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Of(addr, c.path), " "); got != c.want {
			t.Errorf("%s of %s reads %q, want %q", c.path, c.addr, got, c.want)
		}
	}
	locals, err := schema.ParseAddress("job.locals")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Changed(locals, "command", []string{"unused", "rate"}); !slices.Equal(got, []string{"rate"}) {
		t.Errorf("of those that changed the command reads %q, want rate", got)
	}
}

// The values of variables are secrets whatever they are, and those that must not be kept
// or are not known are left out.
func TestVariableValues(t *testing.T) {
	t.Parallel()
	const text = `
		variable "plain" { default = 1 }
		variable "also" { default = 1 }
		variable "typed" {; type = string; default = "1"; }
		variable "secret" {; default = "s3cret"; sensitive = true; }
		variable "short" {; default = "x"; ephemeral = true; }
		variable "missing" { type = string }
		job "a" { command = ["x"] }`
	values := mustEvaluate(t, text, eval.Options{Partial: true}).Variables
	if got := strings.Join(slices.Sorted(maps.Keys(values)), " "); got != "also plain secret typed" {
		t.Errorf("got values of %s, want those of also, plain, secret and typed", got)
	}
	seen := map[string]string{}
	for name, value := range values {
		if _, err := value.MarshalJSON(); err == nil || !value.IsSensitive() {
			t.Errorf("the value of %s is no secret", name)
		}
		inClear, err := value.Reveal(nil)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[inClear]; taken {
			t.Errorf("%s and %s have the same text", name, other)
		}
		seen[inClear] = name
	}
	again := mustEvaluate(t, text, eval.Options{Partial: true, Given: []eval.Given{{Kind: eval.GivenVar, Text: "plain=2"}}}).Variables
	for name, value := range values {
		if same := value == again[name]; same != (name != "plain") {
			t.Errorf("%s with another value of plain: same text %t", name, same)
		}
	}
}
