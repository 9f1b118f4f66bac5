package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions returns what expressions may call, under the names that Terraform
// gives them. Paths are relative to dir. There is no clock, no randomness and
// no network among them: equal files give equal plans.
func functions(dir string) map[string]function.Function {
	fns := map[string]function.Function{}
	for _, some := range []map[string]function.Function{
		valueFunctions(), stringFunctions(), collectionFunctions(), fileFunctions(dir),
	} {
		maps.Copy(fns, some)
	}
	fns["templatefile"] = templateFileFunc(dir, fns)
	return fns
}

// valueFunctions are those of numbers, times and types.
func valueFunctions() map[string]function.Function {
	return map[string]function.Function{
		"abs":          stdlib.AbsoluteFunc,
		"can":          tryfunc.CanFunc,
		"ceil":         stdlib.CeilFunc,
		"floor":        stdlib.FloorFunc,
		"formatdate":   stdlib.FormatDateFunc,
		"log":          stdlib.LogFunc,
		"max":          stdlib.MaxFunc,
		"min":          stdlib.MinFunc,
		"nonsensitive": nonsensitiveFunc(),
		"parseint":     stdlib.ParseIntFunc,
		"pow":          stdlib.PowFunc,
		"sensitive":    sensitiveFunc(),
		"signum":       stdlib.SignumFunc,
		"sum":          sumFunc(),
		"timeadd":      stdlib.TimeAddFunc,
		"tobool":       stdlib.MakeToFunc(cty.Bool),
		"tolist":       toCollectionFunc(cty.List),
		"tomap":        toCollectionFunc(cty.Map),
		"tonumber":     stdlib.MakeToFunc(cty.Number),
		"toset":        toCollectionFunc(cty.Set),
		"tostring":     stdlib.MakeToFunc(cty.String),
		"try":          tryfunc.TryFunc,
	}
}

// stringFunctions are those of strings and encodings.
func stringFunctions() map[string]function.Function {
	return map[string]function.Function{
		"base64decode": base64DecodeFunc(),
		"base64encode": base64EncodeFunc(),
		"chomp":        stdlib.ChompFunc,
		"csvdecode":    stdlib.CSVDecodeFunc,
		"endswith":     stringTestFunc("Whether a string ends with another.", strings.HasSuffix),
		"format":       stdlib.FormatFunc,
		"formatlist":   stdlib.FormatListFunc,
		"indent":       stdlib.IndentFunc,
		"join":         stdlib.JoinFunc,
		"jsondecode":   stdlib.JSONDecodeFunc,
		"jsonencode":   stdlib.JSONEncodeFunc,
		"lower":        stdlib.LowerFunc,
		"regex":        stdlib.RegexFunc,
		"regexall":     stdlib.RegexAllFunc,
		"replace":      stdlib.ReplaceFunc,
		"regexreplace": stdlib.RegexReplaceFunc,
		"sha256":       sha256Func(),
		"split":        stdlib.SplitFunc,
		"startswith":   stringTestFunc("Whether a string starts with another.", strings.HasPrefix),
		"strcontains":  stringTestFunc("Whether a string contains another.", strings.Contains),
		"strlen":       stdlib.StrlenFunc,
		"strrev":       stdlib.ReverseFunc,
		"substr":       stdlib.SubstrFunc,
		"title":        stdlib.TitleFunc,
		"trim":         stdlib.TrimFunc,
		"trimprefix":   stdlib.TrimPrefixFunc,
		"trimspace":    stdlib.TrimSpaceFunc,
		"trimsuffix":   stdlib.TrimSuffixFunc,
		"upper":        stdlib.UpperFunc,
		"urlencode":    stringFunc("Escapes a string for a URL's query.", func(s string) (string, error) { return url.QueryEscape(s), nil }),
		"yamldecode":   ctyyaml.YAMLDecodeFunc,
		"yamlencode":   ctyyaml.YAMLEncodeFunc,
	}
}

// collectionFunctions are those of lists, sets and maps.
func collectionFunctions() map[string]function.Function {
	return map[string]function.Function{
		"alltrue":         allTrueFunc(),
		"anytrue":         anyTrueFunc(),
		"chunklist":       stdlib.ChunklistFunc,
		"coalesce":        stdlib.CoalesceFunc,
		"coalescelist":    stdlib.CoalesceListFunc,
		"compact":         stdlib.CompactFunc,
		"concat":          stdlib.ConcatFunc,
		"contains":        stdlib.ContainsFunc,
		"distinct":        stdlib.DistinctFunc,
		"element":         stdlib.ElementFunc,
		"flatten":         stdlib.FlattenFunc,
		"index":           indexFunc(),
		"keys":            stdlib.KeysFunc,
		"length":          lengthFunc(),
		"lookup":          stdlib.LookupFunc,
		"merge":           stdlib.MergeFunc,
		"one":             oneFunc(),
		"range":           stdlib.RangeFunc,
		"reverse":         stdlib.ReverseListFunc,
		"setintersection": stdlib.SetIntersectionFunc,
		"setproduct":      stdlib.SetProductFunc,
		"setsubtract":     stdlib.SetSubtractFunc,
		"setunion":        stdlib.SetUnionFunc,
		"slice":           stdlib.SliceFunc,
		"sort":            stdlib.SortFunc,
		"values":          stdlib.ValuesFunc,
		"zipmap":          stdlib.ZipmapFunc,
	}
}

// stringFunc makes a function from one string to another.
func stringFunc(description string, of func(string) (string, error)) function.Function {
	return namedStringFunc("str", description, of)
}

// namedStringFunc is stringFunc with a name for its parameter.
func namedStringFunc(param, description string, of func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Description:  description,
		Params:       []function.Parameter{{Name: param, Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := of(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(s), nil
		},
	})
}

func notNull(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() }

func stringTestFunc(description string, test func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Description:  description,
		Params:       []function.Parameter{{Name: "str", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

func sha256Func() function.Function {
	return stringFunc("SHA-256 of a string's bytes, in hex.", func(s string) (string, error) { return hexSum([]byte(s)), nil })
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// lengthFunc is the standard length, for strings too.
func lengthFunc() function.Function {
	return function.New(&function.Spec{
		Description: "The number of elements of a collection, or of characters of a string.",
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true, AllowMarked: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType() {
				return cty.Number, nil
			}
			return cty.NilType, errors.New("want a list, a map, a set or a string")
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			val, marks := args[0].Unmark()
			var n cty.Value
			var err error
			switch ty := val.Type(); {
			case ty == cty.String:
				n, err = stdlib.Strlen(val)
			case ty.IsObjectType():
				n = cty.NumberIntVal(int64(len(ty.AttributeTypes())))
			default:
				n = val.Length()
			}
			if err != nil {
				return cty.NilVal, err
			}
			return n.WithMarks(marks), nil
		},
	})
}

func indexFunc() function.Function {
	return function.New(&function.Spec{
		Description: "The position of the first element that equals a value.",
		Params: []function.Parameter{
			{Name: "list", Type: cty.DynamicPseudoType},
			{Name: "value", Type: cty.DynamicPseudoType},
		},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
				return cty.NilVal, function.NewArgErrorf(0, "want a list")
			}
			i := int64(0)
			for it := args[0].ElementIterator(); it.Next(); i++ {
				_, item := it.Element()
				equal, err := stdlib.Equal(item, args[1])
				if err != nil || !equal.IsKnown() {
					return cty.UnknownVal(cty.Number), err
				}
				if equal.True() {
					return cty.NumberIntVal(i), nil
				}
			}
			return cty.NilVal, errors.New("no element equals the value")
		},
	})
}

// boolsFunc folds a list of bools.
func boolsFunc(description string, of func(trues, total int) bool) function.Function {
	return function.New(&function.Spec{
		Description:  description,
		Params:       []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			trues, total := 0, 0
			for it := args[0].ElementIterator(); it.Next(); total++ {
				_, item := it.Element()
				if !item.IsKnown() {
					return cty.UnknownVal(cty.Bool), nil
				}
				if !item.IsNull() && item.True() {
					trues++
				}
			}
			return cty.BoolVal(of(trues, total)), nil
		},
	})
}

func allTrueFunc() function.Function {
	return boolsFunc("Whether all elements are true.", func(trues, total int) bool { return trues == total })
}

func anyTrueFunc() function.Function {
	return boolsFunc("Whether any element is true.", func(trues, _ int) bool { return trues > 0 })
}

func sumFunc() function.Function {
	return function.New(&function.Spec{
		Description:  "The sum of numbers.",
		Params:       []function.Parameter{{Name: "numbers", Type: cty.List(cty.Number)}},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			total := cty.Zero
			for it := args[0].ElementIterator(); it.Next(); {
				_, item := it.Element()
				if item.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "null is no number")
				}
				if !item.IsKnown() {
					return cty.UnknownVal(cty.Number), nil
				}
				total = total.Add(item)
			}
			return total, nil
		},
	})
}

func oneFunc() function.Function {
	return function.New(&function.Spec{
		Description: "The only element of a list or set, null of an empty one.",
		Params:      []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			switch {
			case ty.IsListType() || ty.IsSetType():
				return ty.ElementType(), nil
			case ty.IsTupleType() && ty.Length() == 0:
				return cty.DynamicPseudoType, nil
			case ty.IsTupleType() && ty.Length() == 1:
				return ty.TupleElementType(0), nil
			case ty.IsTupleType():
				return cty.NilType, fmt.Errorf("want one element or none, there are %d", ty.Length())
			}
			return cty.NilType, errors.New("want a list or a set")
		},
		Impl: func(args []cty.Value, retType cty.Type) (cty.Value, error) {
			switch n := args[0].LengthInt(); n {
			case 0:
				return cty.NullVal(retType), nil
			case 1:
				it := args[0].ElementIterator()
				it.Next()
				_, item := it.Element()
				return item, nil
			default:
				return cty.NilVal, function.NewArgErrorf(0, "want one element or none, there are %d", n)
			}
		},
	})
}

// marksFunc passes its argument through mark.
func marksFunc(description string, mark func(cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return mark(args[0]), nil },
	})
}

func sensitiveFunc() function.Function {
	return marksFunc("Hides a value wherever it flows.", func(v cty.Value) cty.Value { return v.Mark(sensitiveMark{}) })
}

func nonsensitiveFunc() function.Function {
	return marksFunc("Shows a value that was sensitive.", func(v cty.Value) cty.Value {
		v, _ = v.UnmarkDeep()
		return v
	})
}
