package funcs

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/fray-ml/fray/lang/mark"
)

// Group is what a function is about.
type Group string

// The groups, which are the chapters of docs/functions.md.
const (
	Numbers     Group = "numbers"
	Strings     Group = "strings"
	Collections Group = "collections"
	Encodings   Group = "encodings"
	Hashes      Group = "hashes"
	Files       Group = "files"
	Networks    Group = "networks"
	Times       Group = "times"
	Types       Group = "types"
	TPUs        Group = "tpus"
)

// Groups returns all groups in the order in which they are shown.
func Groups() []Group {
	return []Group{
		Numbers, Strings, Collections, Encodings, Hashes,
		Files, Networks, Times, Types, TPUs,
	}
}

// Doc is a function's documentation, for people and editors.
type Doc struct {
	Name        string      `json:"name"`
	Group       Group       `json:"group"`
	Description string      `json:"description"` // sentences
	Parameters  []Parameter `json:"parameters"`
	Variadic    bool        `json:"variadic"` // the last parameter may be given any number of times
	Returns     string      `json:"returns"`  // a type as it is written, "any" where it depends on the arguments
	Example     string      `json:"example"`  // an expression
}

// Parameter is one parameter of a function.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // as it is written; "expression" is evaluated by the function itself, "type" is a type
	Description string `json:"description"`
}

// Signature is the function as "name(a: string, b: number...): type".
func (d Doc) Signature() string {
	params := make([]string, 0, len(d.Parameters))
	for _, p := range d.Parameters {
		params = append(params, p.Name+": "+p.Type)
	}
	if d.Variadic {
		params[len(params)-1] += "..."
	}
	return fmt.Sprintf("%s(%s): %s", d.Name, strings.Join(params, ", "), d.Returns)
}

// libraryFunction is a function with its documentation.
type libraryFunction struct {
	name, text string
	params     []string // "name: what it is", the variadic one last
	returns    string
	example    string
	group      Group

	fn       function.Function
	limit    limit // what is too much for it; nil: its work is bounded by its arguments
	ownMarks bool  // the marks of its arguments need not be those of the result
}

// limit returns an error for arguments that would make a function take more
// time or memory than a plan may. They may be unknown, null or marked.
type limit func(args []cty.Value) error

func (f libraryFunction) doc() Doc {
	d := Doc{
		Name: f.name, Group: f.group, Description: f.text, Returns: f.returns, Example: f.example, Parameters: []Parameter{},
	}
	params := f.fn.Params()
	if v := f.fn.VarParam(); v != nil {
		params = append(params, *v)
		d.Variadic = true
	}
	for i, p := range params {
		name, text := f.param(i)
		d.Parameters = append(d.Parameters, Parameter{Name: name, Type: parameterType(p.Type), Description: text})
	}
	return d
}

// param returns the name and description of a parameter.
func (f libraryFunction) param(i int) (name, text string) {
	if i >= len(f.params) {
		return "", ""
	}
	name, text, _ = strings.Cut(f.params[i], ": ")
	return name, text
}

func parameterType(t cty.Type) string {
	switch {
	case t.Equals(customdecode.ExpressionClosureType):
		return "expression"
	case t.Equals(typeexpr.TypeConstraintType):
		return "type"
	}
	return typeexpr.TypeString(t)
}

// guarded is the function with its descriptions and its limit, that never
// loses a mark and whose errors never repeat what is secret.
func (f libraryFunction) guarded() function.Function {
	open := func(i int, p function.Parameter) function.Parameter {
		p.Name, p.Description = f.param(i)
		if p.Type.IsCollectionType() {
			p.Type = cty.DynamicPseudoType // call converts it in less time
		}
		p.AllowNull, p.AllowUnknown, p.AllowDynamicType, p.AllowMarked = true, true, true, true
		return p
	}
	spec := &function.Spec{
		Description: f.text,
		Type:        function.StaticReturnType(cty.DynamicPseudoType), // call finds it out
		Impl:        func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.call(args) },
	}
	for i, p := range f.fn.Params() {
		spec.Params = append(spec.Params, open(i, p))
	}
	if v := f.fn.VarParam(); v != nil {
		p := open(len(spec.Params), *v)
		spec.VarParam = &p
	}
	return function.New(spec)
}

func (f libraryFunction) call(args []cty.Value) (cty.Value, error) {
	args, err := f.converted(args)
	if err == nil {
		err = checkNumbers(args)
	}
	if err == nil && f.limit != nil {
		err = f.limit(args)
	}
	var val cty.Value
	if err == nil {
		val, err = f.fn.Call(args)
	}
	if err == nil {
		err = checkNumbers([]cty.Value{val})
	}
	if err != nil {
		return cty.NilVal, discreet(err, args)
	}
	if f.ownMarks {
		return val, nil
	}
	// A function that is to take care of marks is not asked about unknown
	// arguments, and those of null it may pass over.
	for _, arg := range args {
		_, marks := arg.Unmark()
		val = val.WithMarks(marks)
	}
	return val, nil
}

// converted returns arguments with those that must be collections as such.
func (f libraryFunction) converted(args []cty.Value) ([]cty.Value, error) {
	params, out := f.fn.Params(), slices.Clone(args)
	for i, arg := range args {
		param := f.fn.VarParam()
		if i < len(params) {
			param = &params[i]
		}
		if !param.Type.IsCollectionType() {
			continue
		}
		val, err := Convert(arg, param.Type)
		if err != nil {
			return args, function.NewArgError(i, err)
		}
		out[i] = val
	}
	return out, nil
}

// maxMessage is how long a function's error may be; it may quote an argument.
const maxMessage = 1000

// secretError is an error whose text is hidden.
type secretError struct {
	marks cty.ValueMarks // of what it is about
}

func (secretError) Error() string {
	return "the reason is not shown, because a sensitive value is involved; try it with a value that is no secret"
}

// discreet is an error as it may be shown, with the argument that it is about.
func discreet(err error, args []cty.Value) error {
	marks := cty.ValueMarks{}
	for _, arg := range args {
		for _, mark := range []any{mark.Sensitive{}, mark.Ephemeral{}} {
			if arg.HasMarkDeep(mark) {
				marks[mark] = struct{}{}
			}
		}
	}
	shown := err
	var (
		secret secretError
		broken function.PanicError
	)
	switch {
	case errors.As(err, &secret):
		maps.Copy(marks, secret.marks)
		return secretError{marks: marks}
	case len(marks) > 0:
		return secretError{marks: marks}
	case errors.As(err, &broken):
		shown = fmt.Errorf("it cannot work with these values (%v)", broken.Value)
		if _, is := broken.Value.(big.ErrNaN); is {
			shown = errors.New("the result is no number")
		}
	}
	if text := shown.Error(); len(text) > maxMessage {
		shown = errors.New(strings.ToValidUTF8(text[:maxMessage], "") + "…")
	}
	var about function.ArgError
	if errors.As(err, &about) && about.Index < len(args) {
		return function.NewArgError(about.Index, shown)
	}
	return shown
}

func notNull(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() }
