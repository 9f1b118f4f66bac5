package funcs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// BenchmarkLarge evaluates functions of large texts and of many elements, and
// reports the time for a unit or a thousand elements; the smaller size is the
// baseline of the larger one.
func BenchmarkLarge(b *testing.B) {
	for name, expression := range largeExpressions() {
		b.Run(name, func(b *testing.B) {
			baseline := 0.0
			for _, n := range []int{8, 32} {
				b.Run(fmt.Sprint(n), func(b *testing.B) {
					ctx := largeContext(b, n, 1000)
					for b.Loop() {
						evaluateLarge(b, ctx, expression)
					}
					each := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(n)
					if baseline == 0 {
						baseline = each
					}
					b.ReportMetric(each/1e6, "ms/unit")
					b.ReportMetric(each/baseline, "x-first")
				})
			}
		})
	}
}

// largeExpressions are functions of what grows in step with their size: text is of
// so many units, and parts are so many thousand short strings.
func largeExpressions() map[string]string {
	return map[string]string{
		"join":        `join(",", concat(texts, texts))`,
		"join parts":  `join(",", parts)`,
		"join tuple":  `join(",", [for p in parts : p])`,
		"flatten":     `flatten([for p in parts : [p, p]])`,
		"concat":      `concat([for p in parts : p], [for p in parts : p])`,
		"for":         `[for p in parts : "${p}-x"]`,
		"for object":  `{ for p in parts : p => 1 }`,
		"format":      `format("%s-%d", substr(text, 0, floor(length(text) / 8)), 1)`,
		"formatlist":  `formatlist("%s-x", parts)`,
		"template":    `"a${text}b"`,
		"for in text": `"%{ for p in parts }${p}\n%{ endfor }"`,
		"replace":     `replace(text, "line", "row")`,
		"pattern":     `replace(substr(text, 0, floor(length(text) / 8)), "/l.ne/", "row")`,
		"regexall":    `regexall("item [0-9]+", join(",", parts))`,
		"jsonencode":  `jsonencode({ text = text, parts = parts })`,
		"jsondecode":  `jsondecode(jsonencode([for p in parts : p]))`,
		"yamldecode":  `yamldecode(yamlencode(slice(parts, 0, floor(length(parts) / 8))))`,
		"split":       `split("\n", join("\n", parts))`,
		"length":      `length(text)`,
		"substr":      `substr(text, 0, -1)`,
		"indent":      `indent(2, text)`,
		"upper":       `upper(text)`,
		"equal":       `parts == [for p in parts : p]`,
		"toset":       `toset(parts)`,
		"distinct":    `distinct(parts)`,
		"sort":        `sort(parts)`,
		"compact":     `compact(parts)`,
		"reverse":     `reverse([for p in parts : p])`,
		"contains":    `contains([for p in parts : p], "none")`,
		"zipmap":      `zipmap(parts, [for p in parts : p])`,
		"merge":       `merge({ for p in parts : p => 1 }, { for p in parts : "${p}2" => 1 })`,
		"keys":        `keys({ for p in parts : p => 1 })`,
		"values":      `values({ for p in parts : p => 1 })`,
		"chunklist":   `chunklist(parts, 10)`,
		"csvdecode":   `csvdecode("a,b\n${join("\n", [for p in parts : "${p},1"])}")`,
		"splat":       `[for p in parts : { a = p }][*].a`,
		"setunion":    `setunion(parts, [for p in parts : "${p}2"])`,
		"trimspace":   `trimspace(text)`,
		"base64":      `base64decode(base64encode(text))`,
		"sha256":      `sha256(text)`,
		"gzip":        `base64gzip(text)`,
		"transpose":   `transpose({ for p in parts : p => ["a"] })`,
		"matchkeys":   `matchkeys(parts, parts, parts)`,
		"coalesce":    `coalesce([for p in parts : p]...)`,
		"max":         `max([for i, p in parts : i]...)`,
		"alltrue":     `alltrue([for p in parts : true])`,
		"sum":         `sum([for i, p in parts : i])`,
		"tolist":      `tolist([for p in parts : p])`,
		"tomap":       `tomap({ for p in parts : p => 1 })`,
		"one":         `length([for p in parts : p])`,
		"lookup":      `lookup({ for p in parts : p => 1 }, "none", 0)`,
		"group":       `{ for i, p in parts : i % 10 => p... }`,
		"setproduct":  `setproduct(parts, ["a", "b"])`,
		"strrev":      `strrev(text)`,
		"title":       `title(text)`,
		"convert":     `convert([for p in parts : p], list(string))`,
	}
}

// largeContext has n units of text, each of some KiB, and as many short strings for each
// unit.
func largeContext(t testing.TB, n, kib int) *hcl.EvalContext {
	t.Helper()
	line := "a line of text that is as long as many lines are\n"
	unit := cty.StringVal(strings.Repeat(line, (kib<<10)/len(line)))
	var texts, parts []cty.Value
	for range n {
		texts = append(texts, unit)
	}
	for i := range n * kib {
		parts = append(parts, cty.StringVal(fmt.Sprintf("item %d of many", i)))
	}
	return &hcl.EvalContext{Functions: InDirectory(t.TempDir()), Variables: map[string]cty.Value{
		"text": cty.StringVal(strings.Repeat(unit.AsString(), n)), "texts": cty.TupleVal(texts), "parts": cty.ListVal(parts),
	}}
}

func evaluateLarge(t testing.TB, ctx *hcl.EvalContext, expression string) cty.Value {
	t.Helper()
	val, diags := evaluateExpression(t, ctx, expression)
	if diags.HasErrors() {
		t.Fatalf("%s: %.300s", expression, diags.Error())
	}
	return val
}
