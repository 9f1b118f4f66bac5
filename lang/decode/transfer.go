package decode

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// transfers reads the moved, import and removed blocks.
func (e *Decoder) transfers(c *schema.Config) {
	for _, b := range e.Decls.Moves {
		from, ok := e.addressIn(b.Attr("from"))
		to, also := e.addressIn(b.Attr("to"))
		if ok && also {
			c.Moves = append(c.Moves, schema.Move{From: from, To: to, Range: b.Range()})
		}
	}
	for _, b := range e.Decls.Removals {
		if from, ok := e.addressIn(b.Attr("from")); ok {
			destroy := e.ConstantBool(b.Child("lifecycle").Attr("destroy"), true)
			c.Removals = append(c.Removals, schema.Removal{From: from, Destroy: destroy, Range: b.Range()})
		}
	}
	if e.Parent != nil {
		return // imports are of the root
	}
	for _, b := range e.Decls.Imports {
		to, ok := e.addressIn(b.Attr("to"))
		id, known := eval.Lookup(e, nil, b.Attr("id"), as.NotEmpty, "")
		switch {
		case !ok || !known:
		case to.IsModule():
			e.ErrorAt(b.Attr("to").Expr.Range(), "Invalid value for to", "Name what is to have the slices: a job, an actor_service or a reservation of the module.")
		default:
			c.Imports = append(c.Imports, schema.Import{To: to, ID: id, Range: b.Range()})
		}
	}
}

// addressIn reads an address as expressions write it: job.a["k"], module.m.
func (e *Decoder) addressIn(x *configs.Expression) (schema.Address, bool) {
	if x == nil {
		return schema.Address{}, false
	}
	t, diags := hcl.AbsTraversalForExpr(x.Expr)
	if diags.HasErrors() {
		e.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, "Write an address without quotes, such as job.train, job.train[0] or module.eval.")
		return schema.Address{}, false
	}
	text, err := addressText(t)
	var addr schema.Address
	if err == nil {
		addr, err = schema.ParseAddress(text)
	}
	if err != nil {
		e.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, diagnose.Sentence(err.Error()))
		return schema.Address{}, false
	}
	if e.Path != "" {
		addr.Module = strings.TrimSuffix(e.Path+"."+addr.Module, ".")
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
				b.WriteString(schema.StringKey(step.Key.AsString()).String())
			}
		default:
			return "", fmt.Errorf("an address has names and keys only")
		}
	}
	return b.String(), nil
}
