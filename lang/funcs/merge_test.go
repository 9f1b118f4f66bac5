package funcs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// TestMergeIsThatOfTheLibrary: merge returns for any two arguments, and for one and none, what the
// library's does: the same value of the same type with the same marks, or an error.
func TestMergeIsThatOfTheLibrary(t *testing.T) {
	object := cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("1"), "é": cty.True})
	values := []cty.Value{
		object, cty.EmptyObjectVal, object.Mark("secret"), cty.NullVal(object.Type()), cty.UnknownVal(object.Type()),
		cty.ObjectVal(map[string]cty.Value{"a": cty.NumberIntVal(1).Mark("inside"), "b": cty.UnknownVal(cty.String), "c": cty.DynamicVal}),
		cty.MapVal(map[string]cty.Value{"a": cty.StringVal("2"), "d": cty.StringVal("3")}), cty.MapValEmpty(cty.String), cty.NullVal(cty.Map(cty.String)),
		cty.UnknownVal(cty.Map(cty.String)), cty.DynamicVal, cty.NullVal(cty.DynamicPseudoType), cty.StringVal("no map"), cty.EmptyTupleVal,
	}
	ours, theirs := mergeFunc(), stdlib.MergeFunc
	check := func(args ...cty.Value) {
		got, err := ours.Call(args)
		want, wantErr := theirs.Call(args)
		if reasonOf(err) != reasonOf(wantErr) {
			t.Errorf("merge(%#v): error %v, want %v", args, err, wantErr)
		} else if err == nil && !got.RawEquals(want) {
			t.Errorf("merge(%#v) = %#v, want %#v", args, got, want)
		}
	}
	check()
	for _, a := range values {
		check(a)
		for _, b := range values {
			check(a, b)
			check(object, a, b)
		}
	}
}

// reasonOf is an error without the stack of a panic.
func reasonOf(err error) string {
	if broken, is := errors.AsType[function.PanicError](err); is {
		return fmt.Sprint(broken.Value)
	}
	return fmt.Sprint(err)
}
