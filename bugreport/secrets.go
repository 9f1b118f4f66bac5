package bugreport

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// unseal returns the secrets that a document has sealed, as far as they can be opened.
func unseal(document []byte, sealer schema.Sealer) []string {
	if sealer == nil {
		return nil
	}
	var found []string
	sealed := regexp.MustCompile(`"sealed"\s*:\s*"(v1:[^"]+)"`) // as documents of the store have a secret
	for _, match := range sealed.FindAllSubmatch(document, -1) {
		if secret, err := sealer.Open(string(match[1])); err == nil {
			found = append(found, secret)
			found = append(found, leaves(secret)...)
		}
	}
	return found
}

// leaves are the texts within a secret that is JSON.
func leaves(secret string) []string {
	var value any
	if json.Unmarshal([]byte(secret), &value) != nil {
		return nil
	}
	var found []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			found = append(found, v)
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(value)
	return found
}

// keyTexts are the forms in which a stack's key could be written.
func keyTexts(keys state.Secrets) []string {
	var found []string
	for _, key := range append([][]byte{keys.Current}, keys.Former...) {
		if len(key) > 0 {
			found = append(found, string(key), base64.StdEncoding.EncodeToString(key), hex.EncodeToString(key))
		}
	}
	return found
}

// leastOfEnvironment is the length below which a value of the environment is not masked: "true" and "1" of a variable
// such as DISABLE_AUTH would garble all texts.
const leastOfEnvironment = 8

// environmentSecrets are the values of this process's variables that are likely to be secret. Paths are none.
func environmentSecrets(environ []string) []string {
	var found []string
	secret := regexp.MustCompile(`(?i)(TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH|WEBHOOK|IDENTITY)`)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if secret.MatchString(name) && len(value) >= leastOfEnvironment && !strings.HasPrefix(value, "/") {
			found = append(found, value)
		}
	}
	return found
}

// declared are the secrets in the files of a configuration: what sensitive variables have by default, in files of
// variables, in the environment and on the command line.
type declared struct {
	secrets []string
	names   map[string]bool
	// unread are files that cannot be parsed, so that what is secret in them is not known.
	unread map[string]bool
}

// declaredSecrets reads configuration files and those of variables.
func declaredSecrets(files map[string][]byte, given []eval.Given, environ []string) declared {
	d := declared{names: map[string]bool{}, unread: map[string]bool{}}
	parsed := map[string]*hclsyntax.Body{}
	for name, source := range files {
		file, diags := hclsyntax.ParseConfig(source, filepath.Base(name), hcl.InitialPos)
		body, ok := file.Body.(*hclsyntax.Body)
		if diags.HasErrors() || !ok {
			d.unread[name] = true
		}
		if !ok {
			continue
		}
		parsed[name] = body
		for _, block := range body.Blocks {
			if block.Type != "variable" || len(block.Labels) == 0 {
				continue
			}
			attribute := block.Body.Attributes["sensitive"]
			if attribute == nil {
				continue
			}
			if value, diags := attribute.Expr.Value(nil); !diags.HasErrors() && value.Equals(cty.False).RawEquals(cty.True) {
				continue
			}
			d.names[block.Labels[0]] = true
			if preset := block.Body.Attributes["default"]; preset != nil {
				d.take(preset.Expr, source)
			}
		}
	}
	for name, body := range parsed {
		if !strings.HasSuffix(name, load.VariablesEnding) {
			continue
		}
		for variable, attribute := range body.Attributes {
			if d.names[variable] {
				d.take(attribute.Expr, files[name])
			}
		}
	}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && d.names[strings.TrimPrefix(name, eval.VariablePrefix)] && strings.HasPrefix(name, eval.VariablePrefix) {
			d.secrets = append(append(d.secrets, value), leaves(value)...)
		}
	}
	for _, g := range given {
		if name, value, ok := strings.Cut(g.Text, "="); ok && g.Kind == eval.GivenVar && d.names[name] {
			d.secrets = append(append(d.secrets, value), leaves(value)...)
		}
	}
	return d
}

// take takes the texts of an expression, as values and as they are written.
func (d *declared) take(expr hclsyntax.Expression, source []byte) {
	if value, diags := expr.Value(nil); !diags.HasErrors() {
		_ = cty.Walk(value, func(_ cty.Path, v cty.Value) (bool, error) { // the function returns no error
			if v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
				d.secrets = append(d.secrets, v.AsString())
			}
			return true, nil
		})
	}
	within := expr.Range()
	tokens, _ := hclsyntax.LexExpression(within.SliceBytes(source), "", hcl.InitialPos)
	for _, token := range tokens {
		if token.Type == hclsyntax.TokenQuotedLit || token.Type == hclsyntax.TokenStringLit {
			d.secrets = append(d.secrets, string(token.Bytes))
		}
	}
}

// configurationFiles reads the files of a configuration's directories, and single ones.
func configurationFiles(paths []string, given []eval.Given) (map[string][]byte, error) {
	found := map[string][]byte{}
	var failed error
	read := func(name string) {
		data, err := os.ReadFile(name)
		if err != nil {
			failed = err
			return
		}
		found[name] = data
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			failed = err
			continue
		}
		if !info.IsDir() {
			read(path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			failed = err
		}
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && (strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, load.VariablesEnding)) {
				read(filepath.Join(path, name))
			}
		}
	}
	for _, g := range given {
		if g.Kind == eval.GivenVarFile {
			read(g.Text)
		}
	}
	return found, failed
}
