package eval

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/schema"
)

// MaxInstances bounds count, for_each and replicas: beyond it a number is more
// likely a mistake than a wish.
const MaxInstances = 1_000_000

// maxTotal is how many times as many all declarations may have together, where
// an instance of a module, which has values of its own, counts as moduleWeight.
const (
	maxTotal     = 2
	moduleWeight = 100
	// manyInstances are worth to be reported before they are decoded.
	manyInstances = 1000
)

// expand gives a declaration its instances, in key order.
func (e *Evaluator) expand(decl *configs.Declaration) bool {
	var ok bool
	decl.Instances, ok = repetition{in: e, decl: decl}.instances()
	return ok
}

// repetition makes the instances of one declaration.
type repetition struct {
	in   *Evaluator
	decl *configs.Declaration
}

// instances are those that the declaration has, in key order.
func (r repetition) instances() ([]configs.Instance, bool) {
	b := r.decl.Block
	switch r.decl.Repetition {
	case configs.Single:
		return []configs.Instance{{}}, r.room(1)
	case configs.Counted:
		if r.decl.Addr.Kind == schema.KindActorService {
			return r.counted(b.Attr("replicas"))
		}
		return r.counted(b.Attr("count"))
	case configs.Keyed:
		return r.keyed(b.Attr("for_each"))
	}
	return nil, false
}

// room takes n instances into account, and reports if all modules together have
// too many: a few calls of modules in modules make more than memory holds.
func (r repetition) room(n int) bool {
	e := r.in
	if r.decl.Addr.Kind == schema.ModuleWord {
		n *= moduleWeight
	}
	if e.total += n; e.total <= maxTotal*e.maxInstances {
		if n >= manyInstances && e.Options.Expanded != nil {
			e.Options.Expanded(e.total)
		}
		return true
	}
	e.full = true
	e.ErrorAt(r.decl.Block.Range(), "Too many instances", fmt.Sprintf(
		"All blocks and modules together may have %d instances at most, and with those of %s there are more (one of a module counts as 100). Lower a count, or split the configuration.", maxTotal*e.maxInstances, e.Global(r.decl.Addr)))
	return false
}

func (r repetition) counted(x *configs.Expression) ([]configs.Instance, bool) {
	e := r.in
	n := 1
	if x != nil {
		out := e.Eval(x, nil)
		if !out.OK || !e.Plain(x, out, "the number of instances") {
			return nil, false
		}
		v, err := as.WholeNumber(0, e.maxInstances)(out.Value)
		if err != nil {
			e.WrongValue(x, out, err)
			return nil, false
		}
		n = v
	}
	if !r.room(n) {
		return nil, false
	}
	instances := make([]configs.Instance, n)
	for i := range instances {
		instances[i].Key = schema.IntKey(i)
	}
	return instances, true
}

func (r repetition) keyed(x *configs.Expression) ([]configs.Instance, bool) {
	e := r.in
	out := e.Eval(x, nil)
	if !out.OK {
		return nil, false
	}
	ty := out.Value.Type()
	isMap := ty.IsMapType() || ty.IsObjectType()
	keys := out // of a map, the values may be anything: they decide no instances
	if isMap && out.Value.IsKnown() && !out.Value.IsNull() && !out.Value.IsMarked() {
		keys.Value = cty.EmptyObjectVal
	}
	if !e.Plain(x, keys, "the instances") {
		return nil, false
	}
	val := out.Value
	isSet := ty.IsSetType() && (ty.ElementType() == cty.String || val.LengthInt() == 0)
	switch {
	case val.IsNull():
		e.WrongValue(x, out, fmt.Errorf("null has no instances; for none, write {}"))
		return nil, false
	case ty.IsTupleType() || ty.IsListType():
		e.WrongValue(x, out, fmt.Errorf("a list gives its instances no names; write toset([…]) for a list of strings"))
		return nil, false
	case !isMap && !isSet:
		e.WrongValue(x, out, fmt.Errorf("want a map or a set of strings, this is %s", diagnose.Friendly(val)))
		return nil, false
	case val.LengthInt() > e.maxInstances:
		e.WrongValue(x, out, fmt.Errorf("there may be %d instances at most, this makes %d", e.maxInstances, val.LengthInt()))
		return nil, false
	}
	if !r.room(val.LengthInt()) {
		return nil, false
	}
	instances := make([]configs.Instance, 0, val.LengthInt())
	for it := val.ElementIterator(); it.Next(); {
		k, v := it.Element()
		if isSet {
			k = v
		}
		if k.IsNull() {
			e.WrongValue(x, out, fmt.Errorf("null cannot name an instance"))
			return instances, false
		}
		instances = append(instances, configs.Instance{Key: schema.StringKey(k.AsString()), Value: v})
	}
	return instances, true
}
