package funcs

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/fray-ml/fray/lang/syntax"
)

const terraformPath = "testdata/functions/terraform.json"

var terraform = flag.String("terraform", "", "path of a terraform to ask anew what its functions return; writes "+terraformPath)

// terraformAnswers are the results that a terraform printed.
type terraformAnswers struct {
	Version   string          `json:"terraform"`
	Functions []string        `json:"functions"` // all that it has
	Cases     []terraformCase `json:"cases"`
}

// terraformCase is what an expression evaluates to. It failed if Type is empty.
type terraformCase struct {
	Expression string          `json:"expression"`
	Type       string          `json:"type,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"`
}

func readTerraformAnswers(t *testing.T) terraformAnswers {
	t.Helper()
	data, err := os.ReadFile(terraformPath)
	if err != nil {
		t.Fatal(err)
	}
	var answers terraformAnswers
	if err := json.Unmarshal(data, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// functionFiles makes a directory with the files that expressions of the tests
// and of docs/functions.md read.
func functionFiles(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hello.txt": "Hello World\n", "data.bin": "\xff\x00\xfe", "notes/a.txt": "a", "notes/b.txt": "b",
		"key.pem": rsaKey().pem, "secret.bin": string(rsaKey().secret),
		"letter.tpl": "%{ for n in names ~}\nHello, ${title(n)}!\n%{ endfor ~}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func evaluateExpression(t testing.TB, ctx *hcl.EvalContext, source string) (cty.Value, hcl.Diagnostics) {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(source), "", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", source, diags)
	}
	syntax.Adapt(expr)
	return expr.Value(ctx)
}

// different are the expressions for which fray has another answer than the
// terraform that was asked, "" for an error, and why.
func different() map[string]string {
	return map[string]string{
		// An operand that decides alone does so whatever the other is, as in Terraform from 1.12.
		`false && null`:        "false",
		`null && false`:        "false",
		`true || null`:         "true",
		`null || true`:         "true",
		`null != null && null`: "false",
		`null == null || null`: "true",

		// Terraform takes addresses of IPv4 in IPv6 for either, in the middle of its arithmetic.
		`cidrhost("::ffff:10.0.0.0/104", 1)`:       `"::ffff:10.0.0.1"`,
		`cidrhost("::ffff:010.0.0.0/104", 1)`:      `"::ffff:10.0.0.1"`,
		`cidrhost("::ffff:10.0.0.0/128", 0)`:       `"::ffff:10.0.0.0"`,
		`cidrhost("::ffff:0:0/96", 5)`:             `"::ffff:0.0.0.5"`,
		`cidrsubnet("::ffff:10.0.0.0/104", 8, 1)`:  `"::ffff:10.1.0.0/112"`,
		`cidrsubnet("::ffff:a00:0/104", 8, 1)`:     `"::ffff:10.1.0.0/112"`,
		`cidrsubnet("::ffff:10.0.0.0/96", 8, 1)`:   `"::ffff:1.0.0.0/104"`,
		`cidrsubnets("::ffff:10.0.0.0/104", 8, 8)`: `["::ffff:10.0.0.0/112","::ffff:10.1.0.0/112"]`,
		`cidrnetmask("::ffff:10.0.0.0/104")`:       "",
		`cidrnetmask("::ffff:10.0.0.0/128")`:       "",
		`cidrnetmask("::ffff:a00:0/104")`:          "",

		`element(["a", "b"], -1)`:             `"b"`, // Terraform 1.12 counts from the end too
		`cidrsubnet("10.1.2.0/24", 4, -1)`:    "",    // Terraform returns 0.0.0.16/28
		`jsondecode("{\"a\":1,\"a\":\"x\"}")`: "",    // an error in later versions of go-cty
	}
}

// TestTerraformAgrees: functions return what Terraform's return.
func TestTerraformAgrees(t *testing.T) {
	t.Parallel()
	dir := functionFiles(t)
	answers := readTerraformAnswers(t)
	if *terraform != "" {
		answers = askTerraform(t, dir, answers)
	}
	ctx := &hcl.EvalContext{Functions: InDirectory(dir)}
	for _, c := range answers.Cases {
		want := string(c.Value)
		other, differs := different()[c.Expression]
		if differs {
			want = other
		}
		got, gotType := "", ""
		if val, diags := evaluateExpression(t, ctx, c.Expression); !diags.HasErrors() {
			val, _ = val.UnmarkDeep()
			data, err := ctyjson.Marshal(val, val.Type())
			if err != nil {
				t.Fatalf("%s: %v", c.Expression, err)
			}
			got, gotType = string(data), typeName(typeexpr.TypeString(val.Type()))
		}
		if got != want || !differs && gotType != c.Type {
			t.Errorf("%s = %s (%s), want %s (%s)", c.Expression, got, gotType, want, c.Type)
		}
	}
}

// TestTerraformFunctionsListed: each function of Terraform is one of fray's, or
// listed with the reason why it is not.
func TestTerraformFunctionsListed(t *testing.T) {
	t.Parallel()
	ours := InDirectory("")
	leftOut := leftOutFunctions()
	answers := readTerraformAnswers(t)
	if len(answers.Functions) < 100 {
		t.Fatalf("%s names %d functions only", terraformPath, len(answers.Functions))
	}
	for _, name := range answers.Functions {
		_, have := ours[name]
		if _, out := leftOut[name]; have == out {
			t.Errorf("%s: fray has it: %v; it is left out: %v", name, have, out)
		}
	}
	for name, why := range leftOut {
		if _, have := ours[name]; have || why == "" {
			t.Errorf("%s is left out because %q, and fray has it: %v", name, why, have)
		}
	}
}

// typeName is a type without what differs in how the two write it.
func typeName(s string) string {
	s = strings.Join(strings.Fields(s), "")
	s = regexp.MustCompile(`,([\])}])`).ReplaceAllString(s, "$1")
	return strings.NewReplacer("=", ":", "dynamic", "any", `"`, "").Replace(s)
}

// askTerraform evaluates all cases with terraform and writes the answers.
func askTerraform(t *testing.T, dir string, old terraformAnswers) terraformAnswers {
	t.Helper()
	run := func(input string, args ...string) []byte {
		cmd := exec.Command(*terraform, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE=/dev/null", "CHECKPOINT_DISABLE=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("terraform %v < %s: %v", args, input, err)
		}
		return out
	}
	var answers terraformAnswers
	version := struct {
		Version string `json:"terraform_version"`
	}{}
	unmarshal(t, run("", "version", "-json"), &version)
	answers.Version = version.Version
	signatures := struct {
		Functions map[string]any `json:"function_signatures"`
	}{}
	unmarshal(t, run("", "metadata", "functions", "-json"), &signatures)
	for _, name := range slices.Sorted(maps.Keys(signatures.Functions)) {
		if !strings.Contains(name, "::") {
			answers.Functions = append(answers.Functions, name)
		}
	}
	for _, c := range old.Cases {
		answer := terraformCase{Expression: c.Expression}
		var text string
		said := run(fmt.Sprintf("try(nonsensitive(jsonencode(%s)), \"failed\")\n", c.Expression), "console")
		if bytes.HasPrefix(said, []byte("(known after apply)")) {
			t.Logf("terraform does not know %s, which is left out", c.Expression)
			continue
		}
		unmarshal(t, said, &text)
		if text != "failed" {
			answer.Value = json.RawMessage(text)
			answer.Type = typeName(string(run(fmt.Sprintf("type(%s)\n", c.Expression), "console")))
		}
		answers.Cases = append(answers.Cases, answer)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n  \"terraform\": %q,\n  \"functions\": [\"%s\"],\n  \"cases\": [\n", answers.Version, strings.Join(answers.Functions, `", "`))
	for i, c := range answers.Cases {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(c); err != nil {
			t.Fatal(err)
		}
		end := ","
		if i == len(answers.Cases)-1 {
			end = ""
		}
		fmt.Fprintf(&out, "    %s%s\n", bytes.TrimSpace(line.Bytes()), end)
	}
	out.WriteString("  ]\n}\n")
	if err := os.WriteFile(terraformPath, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return answers
}

func unmarshal(t *testing.T, data []byte, into any) {
	t.Helper()
	if text, ok := into.(*string); ok { // as the console shows it
		val, diags := hclsyntax.ParseExpression(bytes.TrimSpace(data), "", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%v: %s", diags, data)
		}
		v, diags := val.Value(nil)
		if diags.HasErrors() {
			t.Fatalf("%v: %s", diags, data)
		}
		*text = v.AsString()
		return
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

// TestTypeName: types that the two write differently are the same.
func TestTypeName(t *testing.T) {
	t.Parallel()
	got := typeName("object({\n    a: tuple([\n        string,\n        dynamic,\n    ]),\n})\n")
	want := typeName(typeexpr.TypeString(cty.Object(map[string]cty.Type{"a": cty.Tuple([]cty.Type{cty.String, cty.DynamicPseudoType})})))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
