package funcs

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/syntax"
)

// templateFunctions render templates, which may call fns, but render no
// templates themselves.
func templateFunctions(in files.Folder, fns map[string]function.Function) []libraryFunction {
	callable := maps.Clone(fns)
	vars := "vars: the variables of the template, a map or an object"
	all := []libraryFunction{
		{
			name: "templatefile", text: "A file rendered as a template with variables.", returns: "any", group: Files,
			fn:     templateFunc(callable, in.ReadText),
			params: []string{"path: of the template, as for file", vars}, example: `templatefile("letter.tpl", { names = ["Ann", "Bob"] })`,
		},
		{
			name: "templatestring", text: "A string rendered as a template with variables.", returns: "any", group: Strings,
			fn: templateFunc(callable, func(text string) (name, _ string, err error) {
				return "template", text, nil
			}),
			params: []string{"template: the string; in quotes, $${ is what ${ is in a file", vars}, example: `templatestring("Hello, $${name}!", { name = "Ann" })`,
		},
	}
	for _, f := range all {
		callable[f.name] = function.New(&function.Spec{
			VarParam: &function.Parameter{
				Name: "args", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true,
			},
			Type: func([]cty.Value) (cty.Type, error) {
				return cty.NilType, errors.New("a template cannot render templates; render it before and hand the result in as a variable")
			},
		})
	}
	return all
}

// templateFunc makes a function that renders what source returns for its first
// argument, a text and its name.
func templateFunc(fns map[string]function.Function, source func(string) (name, text string, err error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Type: cty.String}, {Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if ty := args[1].Type(); !ty.IsObjectType() && !ty.IsMapType() {
				return cty.NilVal, function.NewArgErrorf(1, "want a map of variables")
			}
			name, text, err := source(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if diags := syntax.CheckTemplate([]byte(text), name); diags.HasErrors() {
				return cty.NilVal, templateError(0, diags)
			}
			expr, diags := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
			if diags.HasErrors() {
				return cty.NilVal, templateError(0, diags)
			}
			syntax.Adapt(expr)
			val, diags := expr.Value(&hcl.EvalContext{Variables: args[1].AsValueMap(), Functions: fns})
			if diags.HasErrors() {
				return cty.NilVal, templateError(1, diags)
			}
			return val, nil
		},
	})
}

// templateError is the first error of a template, which has a place of its own.
func templateError(arg int, diags hcl.Diagnostics) error {
	first := diags[slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })]
	if marks := marksOfDiagnostics(hcl.Diagnostics{first}); len(marks) > 0 {
		return secretError{marks: marks}
	}
	return function.NewArgErrorf(arg, "%s: %s", diagnose.Place(*first.Subject), strings.TrimSuffix(first.Detail, "."))
}
