package lang

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// flowModule hands a value on, in ways that an output can.
const flowModule = `
	variable "in" {}
	variable "typed" {
		type    = object({ a = optional(string, "none"), b = optional(list(string), []) })
		default = {}
	}
	locals {
		in = [var.in]
	}
	output "out" {
		value = local.in[0]
	}
	output "typed" {
		value = var.typed
	}
`

// flows draws a string expression in which a value, given as an expression of a
// string, may have a part.
func flows(t *rapid.T, depth int, leaf string) string {
	if depth == 0 {
		return rapid.SampledFrom([]string{leaf, `"x"`, "local.plain", `"${` + leaf + `}!"`}).Draw(t, "leaf")
	}
	in := func() string { return flows(t, depth-1, leaf) }
	form := rapid.SampledFrom([]string{
		`"%s-${%s}"`, `(%[2]s == "A" ? "yes" : "no")`, `join(",", [for c in [%[2]s, "y"] : upper(c)])`,
		`{ (%[2]s) = "v" }[%[2]s]`, `{ a = %[2]s, b = "z" }.a`, `{ a = %[2]s, b = "z" }.b`, `[%[2]s, "w"][1]`,
		`try(tonumber(%[2]s), "none")`, `can(regex("^A", %[2]s)) ? "1" : "2"`, `keys({ (%[2]s) = 1 })[0]`,
		`tostring(length(%[2]s))`, `[for k, v in { (%[2]s) = "q" } : "${k}${v}"][0]`, `"%%{ if %[2]s == "B" }b%%{ else }a%%{ endif }"`,
		`"%%{ for c in [%[2]s] }<${c}>%%{ endfor }"`, `[{ f = %[2]s }, { f = "n" }][*].f[0]`, `lookup({ A = "1" }, %[2]s, "2")`,
		`jsondecode(jsonencode({ k = %[2]s })).k`, `coalesce(%[2]s, "c")`, `%[2]s != "A" && true ? "t" : "f"`, `tostring(contains(["A"], %[2]s))`,
		`merge({ k = %[2]s }, { l = "1" }).k`, `tostring(sum([length(%[2]s), 1]))`, `tolist(toset([%[2]s, "s"]))[0]`, `sha256(%[2]s)`,
		`one([%[2]s])`, `flatten([[%[2]s], ["f"]])[0]`, `zipmap(["k"], [%[2]s]).k`, `formatlist("%%s!", [%[2]s])[0]`, `%[2]s`,
	}).Draw(t, "form")
	first := ""
	if strings.Contains(form, `%s-`) {
		return fmt.Sprintf(`"%s-${%s}"`, "p", in())
	}
	return fmt.Sprintf(form, first, in())
}

// flowText is a configuration through which a value flows into what is planned.
func flowText(t *rapid.T, leaf string) string {
	x := flows(t, rapid.IntRange(0, 3).Draw(t, "depth"), leaf)
	through := rapid.SampledFrom([]string{
		"local.x", "module.m.out", `module.t.typed.a`, `module.t.typed.b[0]`, `module.e["k"].out`, "module.c[*].out[0]", `{ for k, m in module.e : k => m.out }["k"]`,
	}).Draw(t, "through")
	return fmt.Sprintf(`
		variable "secret" {
			type      = string
			sensitive = true
			default   = "A"
		}
		locals {
			plain = "plain"
			x     = %s
			y     = %s
		}
		job "source" {
			command = ["x"]
		}
		module "m" {
			source = "./m"
			in     = local.x
		}
		module "t" {
			source = "./m"
			in     = "none"
			typed  = { a = local.x, b = [local.x] }
		}
		module "e" {
			source   = "./m"
			for_each = toset(["k"])
			in       = local.x
		}
		module "c" {
			source = "./m"
			count  = 1
			in     = local.x
		}
		job "reads" {
			command = ["x", local.y]
			args    = [%s]
			environment {
				env = { V = local.y, W = "${local.x}" }
			}
		}
		output "o" {
			value     = { y = local.y }
			sensitive = true
		}`, x, through, through)
}

func flowSource(t *rapid.T, text string) *Source {
	dir, err := os.MkdirTemp("", "flow")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	for name, data := range map[string]string{"main.hcl": text, "m/main.hcl": flowModule} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, diags := Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, text)
	}
	return s
}

// textsOf are the Texts of what reads, in one order.
func textsOf(t *rapid.T, c *schema.Config) []schema.Text {
	for i := range c.Desired.Jobs {
		if j := &c.Desired.Jobs[i]; j.Addr.Name == "reads" {
			return append(append([]schema.Text{}, j.Command...), j.Environment.Env["V"], j.Environment.Env["W"])
		}
	}
	t.Fatal("no job reads")
	return nil
}

// TestSecretsAreMarked: whatever an expression makes of a secret, what differs
// from secret to secret is marked as one.
func TestSecretsAreMarked(t *testing.T) {
	t.Parallel()
	marked := 0
	rapid.Check(t, func(t *rapid.T) {
		text := flowText(t, "var.secret")
		s := flowSource(t, text)
		var found [][]schema.Text
		for _, secret := range []string{"A", "B", "longer-secret"} {
			c, diags := s.Evaluate(eval.Options{Given: []eval.Given{{Kind: eval.GivenVar, Text: "secret=" + secret}}})
			if message := diags.Error(); strings.Contains(message, "longer-secret") {
				t.Fatalf("a diagnostic shows the secret: %s\n%s", message, text)
			}
			if diags.HasErrors() {
				t.Skip(diags)
			}
			found = append(found, textsOf(t, c))
		}
		for i := range found[0] {
			for _, other := range found[1:] {
				if revealed(found[0][i]) != revealed(other[i]) && (!found[0][i].IsSensitive() || !other[i].IsSensitive()) {
					t.Fatalf("word %d is %q or %q, by the secret, and no secret itself\n%s", i, revealed(found[0][i]), revealed(other[i]), text)
				}
			}
			if found[0][i].IsSensitive() {
				marked++
			}
		}
	})
	if marked == 0 {
		t.Error("no secret went anywhere")
	}
}

// TestUnknownStaysUnknown: what an expression makes of a value that is not known
// yet is not known either, or is the same whatever the value will be.
func TestUnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	unknown := 0
	rapid.Check(t, func(t *rapid.T) {
		text := flowText(t, "job.source.address")
		s := flowSource(t, text)
		evaluated := func(computed map[schema.Address]schema.Computed) []schema.Text {
			c, diags := s.Evaluate(eval.Options{Computed: computed})
			if diags.HasErrors() {
				t.Skip(diags)
			}
			return textsOf(t, c)
		}
		before := evaluated(nil)
		for _, address := range []string{"A", "B", "longer-address"} {
			after := evaluated(map[schema.Address]schema.Computed{{Kind: schema.KindJob, Name: "source"}: {ID: "i", Addresses: []string{address}, Slices: []string{"s"}, Status: schema.JobRunning}})
			for i, text := range after {
				switch {
				case before[i].IsUnknown():
					unknown++
				case before[i] != text:
					t.Fatalf("word %d was known as %q and became %q", i, before[i], text)
				}
				if text.IsUnknown() {
					t.Fatalf("word %d is not known, though everything is", i)
				}
			}
		}
	})
	if unknown == 0 {
		t.Error("nothing was unknown")
	}
}

// revealed is a text in clear, "" for one that is not known.
func revealed(text schema.Text) string {
	clear, err := text.Reveal(nil)
	if err != nil {
		return ""
	}
	return clear
}
