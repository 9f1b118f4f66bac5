package lang

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	langdiagnose "github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
)

// output evaluates a configuration and returns the JSON of one output.
func outputOf(t *testing.T, src, name string, opts eval.Options) string {
	t.Helper()
	o, ok := mustEvaluate(t, src, opts).Outputs[name]
	if !ok {
		t.Fatalf("there is no output %q", name)
	}
	return string(o.Value)
}

// TestPrecedence gives the same variable from ever more places; the last wins.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, value string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, []byte("v = \""+value+"\"\n"))
		return path
	}
	writeJSON := func(name, value string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, []byte("{\"//\": \"a comment\", \"v\": \""+value+"\"}\n"))
		return path
	}
	writeFile(t, filepath.Join(dir, "main.hcl"), []byte("variable \"v\" {\n default = \"default\"\n}\noutput \"v\" {\n value = var.v\n}\n"))
	var opts eval.Options
	check := func(want string) {
		t.Helper()
		s, diags := Parse([]string{dir})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		c, diags := s.Evaluate(opts)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if got := string(c.Outputs["v"].Value); got != `"`+want+`"` {
			t.Errorf("var.v = %s, want %q", got, want)
		}
	}
	give := func(kind eval.GivenKind, text string) {
		opts.Given = append(opts.Given, eval.Given{Kind: kind, Text: text})
	}
	check("default")
	opts.Environ = []string{"PATH=/bin", "FRAY_VAR_v=environment", "FRAY_VAR_other=x"}
	check("environment")
	write("fray.frayvars", "fray.frayvars")
	check("fray.frayvars")
	writeJSON("fray.frayvars.json", "fray.frayvars.json")
	check("fray.frayvars.json")
	writeJSON("a.auto.frayvars.json", "a.auto.json")
	check("a.auto.json")
	write("b.auto.frayvars", "b.auto")
	check("b.auto")
	write("a.auto.frayvars", "a.auto")
	check("b.auto")
	writeJSON("b.auto.frayvars.json", "b.auto.json")
	check("b.auto.json")
	give(eval.GivenVarFile, write("first.frayvars", "first"))
	check("first")
	give(eval.GivenVar, "v=flag")
	check("flag")
	give(eval.GivenVarFile, writeJSON("second.json", "second"))
	check("second")
	give(eval.GivenVar, "v=a=b")
	check("a=b")
}

// TestOverriddenValuesAreNotRead: a value that another one takes the place of
// may be anything.
func TestOverriddenValuesAreNotRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.frayvars")
	writeFile(t, file, []byte("v = [other.value]\n"))
	src := "variable \"v\" {; type = list(number); }; output \"v\" {; value = var.v; }"
	opts := eval.Options{Environ: []string{"FRAY_VAR_v=["}, Given: []eval.Given{{Kind: eval.GivenVarFile, Text: file}, {Kind: eval.GivenVar, Text: "v={"}, {Kind: eval.GivenVar, Text: "v=[1]"}}}
	if got := outputOf(t, src, "v", opts); got != "[1]" {
		t.Errorf("var.v = %s, want [1]", got)
	}
}

func TestUnsetVariables(t *testing.T) {
	t.Parallel()
	const src = `
variable "given" { type = number }
variable "token" {
  type        = string
  sensitive   = true
  description = "of the service"
}
variable "zones" { type = list(string) }
output "n" { value = length(var.zones) }
`
	s := parseText(t, src)
	opts := eval.Options{Given: []eval.Given{{Kind: eval.GivenVar, Text: "given=1"}}}
	_, diags := s.Evaluate(opts)
	unset, only := langdiagnose.UnsetVariables(diags)
	want := []langdiagnose.Unset{
		{Name: "token", Type: "string", Description: "of the service", Sensitive: true},
		{Name: "zones", Type: "list(string)"},
	}
	if diff := cmp.Diff(want, unset); diff != "" || !only {
		t.Errorf("unset, only these = %v (-want +got):\n%s", only, diff)
	}
	opts.Given[0].Text = "given=x"
	_, diags = s.Evaluate(opts)
	if unset, only := langdiagnose.UnsetVariables(diags); len(unset) != 2 || only {
		t.Errorf("with another mistake: %d unset, only these = %v; want 2, false", len(unset), only)
	}
	if unset, only := langdiagnose.UnsetVariables(nil); len(unset) != 0 || only {
		t.Errorf("without a mistake: %d unset, only these = %v; want none", len(unset), only)
	}
}

func TestCheckVariables(t *testing.T) {
	t.Parallel()
	s := parseText(t, `
variable "n" {
  type = number
  validation {
    condition     = var.n > 0
    error_message = "Above zero, please."
  }
}
variable "later" {}
variable "zones" {
  type = list(string)
}
job "broken" {
  count = "x"
}
`)
	tests := []struct{ answer, want string }{
		{"n=1", ""},
		{"n=x", "A number is required."},
		{"n=0", "Above zero, please."},
		{"zones=[", "It is no expression, such as [1, 2] or { a = \"b\" }; strings in it need quotes."},
		{"zones=[other]", "It must be a constant; strings in it need quotes."},
		{"zones=" + strings.Repeat("[", 2000), "It is nested too deeply."},
	}
	for _, test := range tests {
		t.Run(test.answer[:min(len(test.answer), 20)], func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, d := range s.CheckVariables(eval.Options{Given: []eval.Given{{Kind: eval.GivenAnswer, Text: test.answer}}}) {
				got += d.Detail
			}
			if got != test.want {
				t.Errorf("an answer %q is wrong for %q, want %q", test.answer, got, test.want)
			}
		})
	}
}

func TestVariableTypes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, typ, given, want string }{
		{"string keeps its text", "string", `{"a": 1}`, `"{\"a\": 1}"`},
		{"any is text", "any", "12", `"12"`},
		{"number", "number", "1e3", "1000"},
		{"bool", "bool", "true", "true"},
		{"list", "list(number)", "[1, 2]", "[1,2]"},
		{"list of strings from numbers", "list(string)", "[1, \"b\"]", `["1","b"]`},
		{"set", "set(string)", `["b", "a", "b"]`, `["a","b"]`},
		{"map", "map(number)", "{ a = 1 }", `{"a":1}`},
		{"object with optional", `object({ a = number, b = optional(string, "x"), c = optional(bool) })`, "{ a = 1 }", `{"a":1,"b":"x","c":null}`},
		{"tuple", "tuple([string, number])", `["a", 1]`, `["a",1]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			src := "variable \"v\" {; type = " + test.typ + "; }; output \"v\" {; value = var.v; }"
			if got := outputOf(t, src, "v", eval.Options{Given: []eval.Given{{Kind: eval.GivenVar, Text: "v=" + test.given}}}); got != test.want {
				t.Errorf("var.v = %s, want %s", got, test.want)
			}
		})
	}
}

func TestNullable(t *testing.T) {
	t.Parallel()
	src := func(nullable string) string {
		return "variable \"v\" {; type = number; default = 3; nullable = " + nullable + "; }; output \"v\" {; value = var.v; }"
	}
	file := filepath.Join(t.TempDir(), "null.frayvars")
	writeFile(t, file, []byte("v = null\n"))
	opts := eval.Options{Given: []eval.Given{{Kind: eval.GivenVarFile, Text: file}}}
	if got := outputOf(t, src("true"), "v", opts); got != "null" {
		t.Errorf("a nullable variable given null = %s, want null", got)
	}
	if got := outputOf(t, src("false"), "v", opts); got != "3" {
		t.Errorf("a variable that is not nullable given null = %s, want its default", got)
	}
}

// TestVariableFilesAreShown: diagnostics of a variable file find its text.
func TestVariableFilesAreShown(t *testing.T) {
	t.Parallel()
	s := parseText(t, "variable \"v\" {; type = number; }")
	file := filepath.Join(t.TempDir(), "x.frayvars")
	writeFile(t, file, []byte("v = []\n"))
	_, diags := s.Evaluate(eval.Options{Given: []eval.Given{{Kind: eval.GivenVarFile, Text: file}}})
	if !diags.HasErrors() || diags[0].Subject == nil || diags[0].Subject.Filename != file {
		t.Fatalf("diagnostics = %v, want one in %s", diags, file)
	}
	if s.Files()[file] == nil {
		t.Errorf("Files() has no %s", file)
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"data.txt": "hello\n", "t.tmpl": "%{ for n in names }<${upper(n)}>%{ endfor }", "sub/a.txt": "", "sub/deep/b.txt": "", "c.yaml": "a: [1, x]\n",
	}
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), []byte(text))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory")
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		`abs(-1)`:                                           "1",
		`alltrue([true, true])`:                             "true",
		`alltrue([true, false])`:                            "false",
		`alltrue([])`:                                       "true",
		`anytrue([false, "true"])`:                          "true",
		`anytrue([])`:                                       "false",
		`base64decode(base64encode("hällo"))`:               `"hällo"`,
		`can(tonumber("x"))`:                                "false",
		`chunklist([1, 2, 3], 2)`:                           "[[1,2],[3]]",
		`coalesce(null, "a")`:                               `"a"`,
		`csvdecode("a,b\n1,2")`:                             `[{"a":"1","b":"2"}]`,
		`element(["a", "b"], 3)`:                            `"b"`,
		`endswith("train.py", ".py")`:                       "true",
		`file("data.txt")`:                                  `"hello\n"`,
		`filebase64("data.txt")`:                            `"aGVsbG8K"`,
		`fileexists("data.txt")`:                            "true",
		`fileexists("none")`:                                "false",
		`fileset("sub", "**/*.txt")`:                        `["a.txt","deep/b.txt"]`,
		`filesha256("data.txt")`:                            `"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"`,
		`flatten([[1], [2, [3]]])`:                          "[1,2,3]",
		`format("%03d-%s", 7, "x")`:                         `"007-x"`,
		`index(["a", "b"], "b")`:                            "1",
		`join("-", ["a", "b"])`:                             `"a-b"`,
		`jsondecode("{\"a\": [1]}").a`:                      "[1]",
		`jsonencode({ a = [1, null] })`:                     `"{\"a\":[1,null]}"`,
		`keys({ b = 1, a = 2 })`:                            `["a","b"]`,
		`length("hällo")`:                                   "5",
		`length([1, 2])`:                                    "2",
		`length({ a = 1 })`:                                 "1",
		`lookup({ a = 1 }, "b", 2)`:                         "2",
		`merge({ a = 1 }, { b = 2 })`:                       `{"a":1,"b":2}`,
		`one([])`:                                           "null",
		`one(["a"])`:                                        `"a"`,
		`one(toset(["a"]))`:                                 `"a"`,
		`pathexpand("~/x")`:                                 `"` + home + `/x"`,
		`path.cwd`:                                          `"` + cwd + `"`,
		`path.module == path.root`:                          "true",
		`basename(path.module) == basename(".")`:            "false",
		`abspath("a/../b") == "${path.root}/b"`:             "true",
		`dirname("a/b")`:                                    `"a"`,
		`range(3)`:                                          "[0,1,2]",
		`regex("v(\\d+)", "v12")`:                           `["12"]`,
		`regexreplace("a1b2", "[0-9]", "-")`:                `"a-b-"`,
		`replace("a.b", ".", "-")`:                          `"a-b"`,
		`setproduct(["a"], [1, 2])`:                         `[["a",1],["a",2]]`,
		`sha256("")`:                                        `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`,
		`sort(["b", "a"])`:                                  `["a","b"]`,
		`split(",", "a,b")`:                                 `["a","b"]`,
		`startswith("train.py", "train")`:                   "true",
		`strcontains("abc", "b")`:                           "true",
		`strrev("abc")`:                                     `"cba"`,
		`substr("abc", 1, 2)`:                               `"bc"`,
		`sum([1, 2.5])`:                                     "3.5",
		`templatefile("t.tmpl", { names = ["a", "b"] })`:    `"\u003cA\u003e\u003cB\u003e"`,
		`tolist(toset(["b", "a"]))`:                         `["a","b"]`,
		`tostring(1)`:                                       `"1"`,
		`tomap({ a = 1 })`:                                  `{"a":1}`,
		`trimspace(" x ")`:                                  `"x"`,
		`try(jsondecode("{"), "broken")`:                    `"broken"`,
		`urlencode("a b&c")`:                                `"a+b%26c"`,
		`yamldecode(file("c.yaml"))`:                        `{"a":[1,"x"]}`,
		`yamlencode({ a = 1 })`:                             `"\"a\": 1\n"`,
		`zipmap(["a"], [1])`:                                `{"a":1}`,
		`nonsensitive(sensitive("x"))`:                      `"x"`,
		`[for i, n in ["a", "b"] : "${i}${n}" if n != "a"]`: `["1b"]`,
		`{ for n in ["a"] : n => upper(n) }`:                `{"a":"A"}`,
		`true ? "yes" : "no"`:                               `"yes"`,
	}
	for expr, want := range tests {
		t.Run(expr, func(t *testing.T) {
			writeFile(t, filepath.Join(dir, "main.hcl"), []byte("output \"o\" {\n  value = "+expr+"\n}\n"))
			s, diags := Parse([]string{dir})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			c, diags := s.Evaluate(eval.Options{})
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if got := string(c.Outputs["o"].Value); got != want {
				t.Errorf("%s = %s, want %s", expr, got, want)
			}
		})
	}
}
