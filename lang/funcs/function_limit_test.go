package funcs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// TestFunctionLimits: what would take too much memory or time is rejected, with
// an error about it.
func TestFunctionLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1<<20)
	numbers := make([]cty.Value, 2000)
	for i := range numbers {
		numbers[i] = cty.NumberIntVal(int64(i))
	}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), c-1)
	}
	ctx := &hcl.EvalContext{
		Functions: InDirectory(functionFiles(t)),
		Variables: map[string]cty.Value{
			"long": cty.StringVal(long), "text": cty.StringVal(long[:100_000]), "numbers": cty.ListVal(numbers), "bomb": cty.StringVal(bomb),
			"lines": cty.StringVal(strings.Repeat("\n", 1<<20)), "deep": cty.StringVal(strings.Repeat("[", 100_000)),
			"dashes": cty.StringVal(strings.Repeat("- ", 100_000) + "1"), "commas": cty.StringVal(strings.Repeat(",", maxElements+10)),
			"digits": cty.StringVal(strings.Repeat("9", 1<<20)), "invalid": cty.StringVal("\xff\x00"),
			"flow": cty.StringVal("[" + strings.Repeat("[", 2000) + strings.Repeat("]", 2001)),
			"json": cty.StringVal(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)),
		},
	}
	for source, want := range map[string]string{
		`range(1e9)`:                                             "1024",
		`range(0, 1, 1e-9)`:                                      "1024",
		`setproduct(numbers, numbers)`:                           "more than 1000000 elements",
		`format("%999999999s", "x")`:                             "longer than 64 MiB",
		`format("%.99999999999999999999f", 1)`:                   "longer than 64 MiB",
		`format(join("", [for i in range(200): "%[1]s"]), long)`: "longer than 64 MiB",
		`formatlist("%1000000s", numbers)`:                       "longer than 64 MiB",
		`formatlist("%s%s", numbers, long)`:                      "longer than 64 MiB",
		`format("%d", 1e100000000)`:                              "too large",
		`format("%s", 1e100000000)`:                              "too large",
		`tostring(1e100000000)`:                                  "too large",
		`tostring(1e-100000000)`:                                 "too close to zero",
		`tonumber("1e100000000")`:                                "too large",
		`jsonencode([1e100000000])`:                              "too large",
		`jsonencode([for i in range(100) : long])`:               "longer than 64 MiB",
		`yamlencode([for i in range(100) : long])`:               "longer than 64 MiB",
		`jsondecode("1e100000000")`:                              "too large",
		`yamldecode("1e100000000")`:                              "too large",
		`convert([1e100000000], list(string))`:                   "too large",
		`ceil(1e100000000)`:                                      "too large",
		`indent(1e9, lines)`:                                     "longer than 64 MiB",
		`indent(-1, "a")`:                                        "must not be negative",
		`join(long, numbers)`:                                    "longer than 64 MiB",
		`split("", commas)`:                                      "more than 1000000 elements",
		`replace(long, "", long)`:                                "longer than 64 MiB",
		`replace(long, "a", long)`:                               "longer than 64 MiB",
		`replace(text, "/a/", text)`:                             "longer than 64 MiB",
		`regexreplace(long, "(a+)", join("", [for i in range(100): "$1"]))`: "longer than 64 MiB",
		`regexall("((a{1,30}){1,30})b", long)`:                              "too many steps",
		`replace(long, "/((a{1,30}){1,30})b/", "")`:                         "too many steps",
		`regexreplace(long, "((a{1,30}){1,30})b", "")`:                      "too many steps",
		`regex("((a{1,30}){1,30})b", long)`:                                 "too many steps",
		`parseint(digits, 10)`:                                              "more than 10000 digits",
		`tonumber(digits)`:                                                  "more than 10000 digits",
		`jsondecode(deep)`:                                                  "nested too deeply",
		`jsondecode(json)`:                                                  "nested too deeply",
		`jsondecode("[${commas}]")`:                                         "more than 1000000 elements",
		`yamldecode(deep)`:                                                  "more than 20000 brackets",
		`yamldecode(dashes)`:                                                "nested too deeply",
		`yamldecode(flow)`:                                                  "nested too deeply",
		`yamldecode(bomb)`:                                                  "more than 1000000 elements",
		`yamldecode(lines)`:                                                 "more than 1000000 elements",
		`csvdecode(commas)`:                                                 "more than 1000000 elements",
		`yamlencode(invalid)`:                                               "not UTF-8",
		`fileset(".", "{a,b}{a,b}{a,b}{a,b}{a,b}")`:                         "too complex",
		`fileset(".", "**/a/**/a/**/a/**/a/**")`:                            "too complex",
		`fileset(".", "../*")`:                                              "leaves the directory",
		`templatestring("$${templatestring(\"x\", {})}", {})`:               "cannot render templates",
		`tpu(long)`:                                                         "no TPU type",
		`log(-1, 2)`:                                                        "no number",
		`tobool(long)`:                                                      "…",
	} {
		val, diags := evaluateExpression(t, ctx, source)
		if !diags.HasErrors() {
			t.Errorf("%s is of %s, want an error about %q", source, val.Type().FriendlyName(), want)
			continue
		}
		if text := diags.Error(); !strings.Contains(text, want) || len(text) > 2*maxMessage {
			t.Errorf("%s says %.300s, want %q", source, text, want)
		}
	}
}

// TestFunctionLimitsShared: elements that stand in many places count in each.
func TestFunctionLimitsShared(t *testing.T) {
	t.Parallel()
	shared := cty.StringVal("x")
	for range 20 {
		shared = cty.TupleVal([]cty.Value{shared, shared})
	}
	want := "more than 1000000 elements"
	if _, err := InDirectory("")["flatten"].Call([]cty.Value{shared}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestFunctionsWithinLimits: what is large and not too large works, in time.
func TestFunctionsWithinLimits(t *testing.T) {
	t.Parallel()
	mixed := make([]cty.Value, 20_000)
	for i := range mixed {
		mixed[i] = cty.NumberIntVal(int64(i))
		if i%2 == 0 {
			mixed[i] = cty.StringVal(fmt.Sprint(i))
		}
	}
	nested := `"x"`
	for range 200 {
		nested = "try(" + nested + ")"
	}
	ctx := &hcl.EvalContext{
		Functions: InDirectory(""),
		Variables: map[string]cty.Value{
			"mixed": cty.TupleVal(mixed), "text": cty.StringVal(strings.Repeat("step 10: loss 2.5\n", 4000)),
		},
	}
	for source, want := range map[string]string{
		`length(tolist(mixed))`:                                        "20000",
		`length(distinct(concat(mixed, mixed)))`:                       "20000",
		`length(matchkeys(mixed, mixed, slice(mixed, 0, 10000)))`:      "10000",
		`length(regexall("(?m)^step [0-9]+: loss [0-9.]+$", text))`:    "4000",
		`length(split("\n", replace(text, "/loss ([0-9.]+)/", "$1")))`: "4001",
		`length(formatlist("worker-%05d", range(1000)))`:               "1000",
		`length(jsondecode(jsonencode(mixed)))`:                        "20000",
		`length(yamldecode(yamlencode(mixed)))`:                        "20000",
		`length(format("%10000s", "x"))`:                               "10000",
		`length(` + nested + `)`:                                       "1",
	} {
		val, diags := evaluateExpression(t, ctx, source)
		if diags.HasErrors() {
			t.Errorf("%s: %v", source, diags)
			continue
		}
		if got := val.AsBigFloat().Text('f', -1); got != want {
			t.Errorf("%s = %s, want %s", source, got, want)
		}
	}
}

// TestCountMatches: the work of finding all matches is counted, and not only
// that of finding one, which here is linear.
func TestCountMatches(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 1000)
	for name, tt := range map[string]struct {
		pattern      string
		budget, most int
		want         int
		err          string
	}{
		"few":         {"a{100}", 10_000, 1000, 10, ""},
		"none":        {"b", 10_000, 1000, 0, ""},
		"empty":       {"", 10_000, 1001, 1000, ""},
		"each":        {"a", 10_000, 1000, 1000, ""},
		"too many":    {"a", 10_000, 999, 0, "elements"},
		"to the end":  {".*[^a]|a", 100_000, 1000, 0, "too many steps"},
		"enough time": {".*[^a]|a", 1_000_000, 1000, 1000, ""},
	} {
		got, err := countMatches(regexp.MustCompile(tt.pattern), text, tt.budget, tt.most)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %d, %v, want %d, %q", name, got, err, tt.want, tt.err)
		}
	}
}

func BenchmarkLibrary(b *testing.B) {
	for b.Loop() {
		InDirectory("")
	}
}
