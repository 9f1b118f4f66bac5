package schema

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// maxInstances bounds count, for_each and replicas: beyond it a number is more
// likely a mistake than a wish.
const maxInstances = 1_000_000

// maxTotal is how many times as many all declarations may have together, where
// an instance of a module, which has values of its own, counts as moduleWeight.
const (
	maxTotal     = 2
	moduleWeight = 100
)

// expand gives a declaration its instances, in key order.
func (e *evaluator) expand(decl *declaration) bool {
	switch decl.repetition {
	case single:
		decl.instances = []instance{{}}
		return e.room(decl, 1)
	case counted:
		x := decl.block.attr("count")
		if decl.addr.Kind == KindActorService {
			x = decl.block.attr("replicas")
		}
		return e.expandCount(decl, x)
	case keyed:
		return e.expandEach(decl, decl.block.attr("for_each"))
	}
	return false
}

// room takes n instances into account, and tells if all modules together have
// too many: a few calls of modules in modules make more than memory holds.
func (e *evaluator) room(decl *declaration, n int) bool {
	if decl.addr.Kind == moduleWord {
		n *= moduleWeight
	}
	if e.total += n; e.total <= maxTotal*e.maxInstances {
		return true
	}
	e.full = true
	e.errorAt(decl.block.rng(), "Too many instances", fmt.Sprintf(
		"All blocks and modules together may have %d instances at most, and with those of %s there are more (one of a module counts as 100). Lower a count, or split the configuration.", maxTotal*e.maxInstances, e.global(decl.addr)))
	return false
}

func (e *evaluator) expandCount(decl *declaration, x *expression) bool {
	n := 1
	if x != nil {
		out := e.eval(x, nil)
		if !out.ok || !e.plain(x, out, "the number of instances") {
			return false
		}
		v, err := wholeNumber(0, e.maxInstances)(out.val)
		if err != nil {
			e.wrongValue(x, out, err)
			return false
		}
		n = v
	}
	if !e.room(decl, n) {
		return false
	}
	decl.instances = make([]instance, n)
	for i := range decl.instances {
		decl.instances[i].key = IntKey(i)
	}
	return true
}

func (e *evaluator) expandEach(decl *declaration, x *expression) bool {
	out := e.eval(x, nil)
	if !out.ok {
		return false
	}
	ty := out.val.Type()
	isMap := ty.IsMapType() || ty.IsObjectType()
	keys := out // of a map, the values may be anything: they decide no instances
	if isMap && out.val.IsKnown() && !out.val.IsNull() && !out.val.IsMarked() {
		keys.val = cty.EmptyObjectVal
	}
	if !e.plain(x, keys, "the instances") {
		return false
	}
	val := out.val
	isSet := ty.IsSetType() && (ty.ElementType() == cty.String || val.LengthInt() == 0)
	switch {
	case val.IsNull():
		e.wrongValue(x, out, fmt.Errorf("null has no instances; for none, write {}"))
		return false
	case ty.IsTupleType() || ty.IsListType():
		e.wrongValue(x, out, fmt.Errorf("a list gives its instances no names; write toset([…]) for a list of strings"))
		return false
	case !isMap && !isSet:
		e.wrongValue(x, out, fmt.Errorf("want a map or a set of strings, this is %s", friendly(val)))
		return false
	case val.LengthInt() > e.maxInstances:
		e.wrongValue(x, out, fmt.Errorf("there may be %d instances at most, this makes %d", e.maxInstances, val.LengthInt()))
		return false
	}
	if !e.room(decl, val.LengthInt()) {
		return false
	}
	for it := val.ElementIterator(); it.Next(); {
		k, v := it.Element()
		if isSet {
			k = v
		}
		if k.IsNull() {
			e.wrongValue(x, out, fmt.Errorf("null cannot name an instance"))
			return false
		}
		decl.instances = append(decl.instances, instance{key: StringKey(k.AsString()), val: v})
	}
	return true
}

// plain reports whether a value is known and not sensitive, and tells if not.
func (e *evaluator) plain(x *expression, out evaluated, what string) bool {
	if !e.keepable(x, out) {
		return false
	}
	if isSensitive(out.val) {
		e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Sensitive value",
			fmt.Sprintf("A sensitive value cannot decide %s, because plans show it. Use nonsensitive() if it is no secret.", what)))
		return false
	}
	if !out.val.IsWhollyKnown() {
		e.notKnown(x, out.ctx,
			fmt.Sprintf("This comes from values that are known only after apply, but %s must be known at plan time. Such values can stand in command, env and outputs.", what))
		return false
	}
	return true
}

// wrongValue reports an attribute whose value does not fit.
func (e *evaluator) wrongValue(x *expression, out evaluated, err error) {
	e.add(valueError(x.expr.Range(), x.expr, out.ctx, "Invalid value for "+x.name, sentence(err.Error())))
}

func valueError(rng hcl.Range, expr hcl.Expression, ctx *hcl.EvalContext, summary, detail string) *hcl.Diagnostic {
	d := errorAt(rng, summary, detail)
	if ctx != nil {
		d.Expression, d.EvalContext = expr, ctx
	}
	return d
}

// values are the variables that an expression of the instance may use.
func (i instance) values() map[string]cty.Value {
	if n, ok := i.key.Int(); ok {
		return map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberVal(new(big.Float).SetInt64(int64(n)))})}
	}
	if s, ok := i.key.Str(); ok {
		return map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(s), "value": i.val})}
	}
	return nil
}

func (i instance) addr(base Address) Address {
	base.Key = i.key
	return base
}
