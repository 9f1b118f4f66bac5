package lang

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// TestEveryAttributeIsRead gives each attribute of the language a value that
// fits none, and expects an error there: nothing that is documented is ignored.
func TestEveryAttributeIsRead(t *testing.T) {
	t.Parallel()
	anything := []string{"variable.default", "output.value"}
	for path, typ := range everyType(language.Root(), "") {
		for _, a := range typ.Attrs {
			name := path + "." + a.Name
			if slices.Contains(anything, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				src := wrap(strings.Split(path, "."), language.Root(), a.Name)
				line := 1 + strings.Count(src[:strings.Index(src, "[[{}]]")], "\n")
				dir := t.TempDir()
				writeFile(t, filepath.Join(dir, "main.hcl"), []byte(src))
				writeFile(t, filepath.Join(dir, "m", "main.hcl"), nil)
				source, diags := Parse([]string{dir})
				_, more := source.Evaluate(eval.Options{Local: true, Given: []eval.Given{{Kind: eval.GivenVar, Text: "x=1"}}})
				diags = append(diags, more...)
				for _, d := range diags {
					if d.Subject != nil && d.Subject.Start.Line == line {
						return
					}
				}
				t.Errorf("no diagnostic at the attribute: %v\n%s", diags, src)
			})
		}
	}
}

// wrap writes the blocks of a path with what they need, and in the innermost
// one the attribute with a value that is wrong.
func wrap(path []string, in *language.BlockType, attr string) string {
	typ := in.Variants(path[0])[0]
	path = path[1:]
	head := typ.Name
	if typ.Variant != "" {
		for _, v := range in.Variants(typ.Name) {
			if v.Variant == path[0] {
				typ = v
			}
		}
		path = path[1:]
		head += fmt.Sprintf(" %q", typ.Variant)
		if typ.Label2 != "" {
			head += ` "x"`
		}
	} else if typ.Label != "" {
		head += ` "x"`
	}
	fill := map[string]string{"command": `["x"]`, "condition": "true", "error_message": `"m"`, "class": `"m:C"`, "project": `"p"`, "address": `"http://a:1"`, "bucket": `"b"`, "value": "1",
		"source": `"./m"`, "from": "job.x", "to": "job.y", "id": `"i"`}
	var body strings.Builder
	for _, a := range typ.Attrs {
		if a.Required && (len(path) > 0 || a.Name != attr) {
			fmt.Fprintf(&body, "%s = %s\n", a.Name, fill[a.Name])
		}
	}
	if typ.Name == string(schema.KindActorService) && attr != "command" {
		body.WriteString("command = [\"x\"]\n")
	}
	if len(path) > 0 {
		body.WriteString(wrap(path, typ, attr))
	} else {
		fmt.Fprintf(&body, "%s = [[{}]]\n", attr)
	}
	return fmt.Sprintf("%s {\n%s}\n", head, body.String())
}
