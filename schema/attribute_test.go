package schema

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryAttributeIsRead gives each attribute of the language a value that
// fits none, and expects an error there: nothing that is documented is ignored.
func TestEveryAttributeIsRead(t *testing.T) {
	t.Parallel()
	anything := []string{"variable.default", "output.value"}
	for path, typ := range everyType(language(), "") {
		for _, a := range typ.attrs {
			name := path + "." + a.name
			if slices.Contains(anything, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				src := wrap(strings.Split(path, "."), language(), a.name)
				line := 1 + strings.Count(src[:strings.Index(src, "[[{}]]")], "\n")
				dir := t.TempDir()
				writeFile(t, filepath.Join(dir, "main.hcl"), []byte(src))
				writeFile(t, filepath.Join(dir, "m", "main.hcl"), nil)
				source, diags := Parse([]string{dir})
				_, more := source.Evaluate(Options{Local: true, Given: []Given{{GivenVar, "x=1"}}})
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
func wrap(path []string, in *blockType, attr string) string {
	typ := in.variants(path[0])[0]
	path = path[1:]
	head := typ.name
	if typ.variant != "" {
		for _, v := range in.variants(typ.name) {
			if v.variant == path[0] {
				typ = v
			}
		}
		path = path[1:]
		head += fmt.Sprintf(" %q", typ.variant)
		if typ.label2 != "" {
			head += ` "x"`
		}
	} else if typ.label != "" {
		head += ` "x"`
	}
	fill := map[string]string{"command": `["x"]`, "condition": "true", "error_message": `"m"`, "class": `"m:C"`, "project": `"p"`, "bucket": `"b"`, "value": "1",
		"source": `"./m"`, "from": "job.x", "to": "job.y", "id": `"i"`}
	var body strings.Builder
	for _, a := range typ.attrs {
		if a.required && (len(path) > 0 || a.name != attr) {
			fmt.Fprintf(&body, "%s = %s\n", a.name, fill[a.name])
		}
	}
	if typ.name == string(KindActorService) && attr != "command" {
		body.WriteString("command = [\"x\"]\n")
	}
	if len(path) > 0 {
		body.WriteString(wrap(path, typ, attr))
	} else {
		fmt.Fprintf(&body, "%s = [[{}]]\n", attr)
	}
	return fmt.Sprintf("%s {\n%s}\n", head, body.String())
}
