package schema

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// transfers reads the moved, import and removed blocks.
func (e *evaluator) transfers(c *Config) {
	for _, b := range e.decls.moves {
		from, ok := e.addressIn(b.attr("from"))
		to, also := e.addressIn(b.attr("to"))
		if ok && also {
			c.Moves = append(c.Moves, Move{From: from, To: to, Range: b.rng()})
		}
	}
	for _, b := range e.decls.removals {
		if from, ok := e.addressIn(b.attr("from")); ok {
			destroy := e.constantBool(b.child("lifecycle").attr("destroy"), true)
			c.Removals = append(c.Removals, Removal{From: from, Destroy: destroy, Range: b.rng()})
		}
	}
	if e.parent != nil {
		return // imports are of the root
	}
	for _, b := range e.decls.imports {
		to, ok := e.addressIn(b.attr("to"))
		id, known := lookup(e, nil, b.attr("id"), notEmpty, "")
		switch {
		case !ok || !known:
		case to.IsModule():
			e.errorAt(b.attr("to").expr.Range(), "Invalid value for to", "Name what is to have the slices: a job, an actor_service or a reservation of the module.")
		default:
			c.Imports = append(c.Imports, Import{To: to, ID: id, Range: b.rng()})
		}
	}
}

// addressIn reads an address as expressions write it: job.a["k"], module.m.
func (e *evaluator) addressIn(x *expression) (Address, bool) {
	if x == nil {
		return Address{}, false
	}
	t, diags := hcl.AbsTraversalForExpr(x.expr)
	if diags.HasErrors() {
		e.errorAt(x.expr.Range(), "Invalid value for "+x.name, "Write an address without quotes, such as job.train, job.train[0] or module.eval.")
		return Address{}, false
	}
	text, err := addressText(t)
	var addr Address
	if err == nil {
		addr, err = ParseAddress(text)
	}
	if err != nil {
		e.errorAt(x.expr.Range(), "Invalid value for "+x.name, sentence(err.Error()))
		return Address{}, false
	}
	if e.path != "" {
		addr.Module = strings.TrimSuffix(e.path+"."+addr.Module, ".")
	}
	return addr, true
}

// addressText is a traversal as [Address.String] writes it.
func addressText(t hcl.Traversal) (string, error) {
	var b strings.Builder
	for _, step := range t {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(step.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + step.Name)
		case hcl.TraverseIndex:
			switch {
			case step.Key.Type() == cty.Number:
				b.WriteString("[" + step.Key.AsBigFloat().Text('f', -1) + "]")
			case step.Key.Type() == cty.String && !step.Key.IsNull():
				b.WriteString(StringKey(step.Key.AsString()).String())
			}
		default:
			return "", fmt.Errorf("an address has names and keys only")
		}
	}
	return b.String(), nil
}
