package lang

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// reversing is a Sealer for tests: deterministic, and without the secret's text.
type reversing struct{}

var _ schema.Sealer = reversing{}

func (reversing) Seal(secret string) (string, error) {
	sealed := []byte{}
	for i := range len(secret) {
		sealed = fmt.Appendf(sealed, "%02x", secret[len(secret)-1-i])
	}
	return string(sealed), nil
}

func (reversing) Open(sealed string) (string, error) {
	data, err := hex.DecodeString(sealed)
	slices.Reverse(data)
	return string(data), err
}

// isSealed reports whether a text is written as a sealed one.
func isSealed(text schema.Text) bool {
	data, err := json.Marshal(text)
	return err == nil && strings.HasPrefix(string(data), `{"sealed":`)
}

type failing struct{ reversing }

func (failing) Seal(string) (string, error) { return "", fmt.Errorf("no key") }

const secrets = `
	variable "token" {
		type      = string
		sensitive = true
		default   = "hunter2-token"
	}
	variable "env" {
		type      = map(string)
		sensitive = true
		default   = { PASSWORD = "hunter2-env" }
	}
	locals {
		header = "Bearer ${var.token}"
		words  = [var.token, "plain"]
	}
	job "a" {
		count   = 2
		command = concat(["curl", "-H", local.header, "${count.index}"], local.words)
		environment {
			env = merge(var.env, { NUMBER = count.index, INLINE = sensitive("hunter2-inline") })
		}
	}
	job "b" {
		command = ["x", upper(var.token)]
		environment {
			env = { A = "public" }
		}
	}
	output "o" {
		value     = { token = local.header, list = [1] }
		sensitive = true
	}
	output "p" { value = nonsensitive("public") }`

func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, secrets, eval.Options{})
	if data, err := json.Marshal(c.Desired); err == nil {
		t.Errorf("secrets in clear were encoded: %s", data)
	}
	if data, err := json.Marshal(c.Outputs); err == nil {
		t.Errorf("a secret output in clear was encoded: %s", data)
	}
	before := fmt.Sprintf("%#v", c.Desired.Jobs)
	sealed, err := c.Desired.Seal(reversing{})
	if err != nil {
		t.Fatal(err)
	}
	header, err := c.Desired.Jobs[0].Command[2].Reveal(nil)
	if after := fmt.Sprintf("%#v", c.Desired.Jobs); after != before || err != nil || header != "Bearer hunter2-token" {
		t.Error("Seal changed what it was given")
	}
	outputs, err := schema.SealOutputs(c.Outputs, reversing{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Outputs["o"].Secret.Reveal(nil); err != nil {
		t.Error("SealOutputs changed what it was given")
	}
	for _, v := range []any{sealed, outputs} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(string(data)), "hunter2") {
			t.Errorf("a secret is in %s", data)
		}
		shown := fmt.Sprintf("%v %+v %#v", v, v, v)
		if !strings.Contains(string(data), `"sealed":`) || strings.Contains(shown, "hunter2") {
			t.Errorf("encoded %s, shown %s: want sealed secrets", data, shown)
		}
	}
	if got, want := sealed.Jobs[0].Command, []bool{false, false, true, false, true, false}; !reflect.DeepEqual(sensitivity(got), want) {
		t.Errorf("sensitive words of %v = %v, want %v", got, sensitivity(got), want)
	}
	if env := sealed.Jobs[0].Environment.Env; !env["PASSWORD"].IsSensitive() || !env["INLINE"].IsSensitive() {
		t.Errorf("env = %v, want its secrets sealed", env)
	}
}

func sensitivity(words []schema.Text) []bool {
	is := make([]bool, 0, len(words))
	for _, w := range words {
		is = append(is, w.IsSensitive())
	}
	return is
}

func TestSealFails(t *testing.T) {
	t.Parallel()
	c := mustEvaluate(t, secrets, eval.Options{})
	if _, err := c.Desired.Seal(failing{}); err == nil || !strings.Contains(err.Error(), "job.a[0] command") {
		t.Errorf("Seal with a broken sealer: %v, want an error that names job.a[0]", err)
	}
	if _, err := schema.SealOutputs(c.Outputs, failing{}); err == nil || !strings.Contains(err.Error(), "output o") {
		t.Errorf("SealOutputs with a broken sealer: %v, want an error that names the output", err)
	}
}

// TestSecretsStayOutOfDiagnostics makes every kind of mistake with a secret.
func TestSecretsStayOutOfDiagnostics(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		"tonumber(var.token)", "jsondecode(var.token)", "file(var.token)", "var.token + 1", "var.token.x", "var.map[var.token]",
		"[1][var.token]", "regex(\"[0-9]{9}\", var.token)", "{ (var.token) = 1 }.x", "format(\"%d\", var.token)", "var.obj.missing",
		"templatefile(var.token, {})", "one([var.token, var.token])", "parseint(upper(var.token), 2)", "tonumber(local.derived)", "base64decode(var.token)",
	} {
		src := `
			variable "token" {; sensitive = true; default = "hunter2"; }
			variable "map" {; default = { a = 1 }; }
			variable "obj" {; sensitive = true; default = { hunter2 = "hunter2" }; }
			locals {; derived = "x${var.token}"; }
			job "a" {; command = ["x", ` + expr + `]; resources {; slices = ` + expr + `; }; }`
		_, diags := parseText(t, src).Evaluate(eval.Options{})
		if !diags.HasErrors() {
			t.Errorf("%s: no error", expr)
		}
		for _, d := range diags {
			if text := strings.ToLower(d.Summary + d.Detail); strings.Contains(text, "hunter2") {
				t.Errorf("%s: the diagnostic shows the secret: %s", expr, text)
			}
		}
	}
}
