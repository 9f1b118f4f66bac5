package configs

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/language"
)

// Expression is an attribute's expression with what it refers to. One that does
// not refer to an instance (count.index, each) is evaluated once.
type Expression struct {
	Name  string
	Mode  language.Mode
	Expr  hcl.Expression
	Range hcl.Range // of the attribute

	Iterators   []string // names that the dynamic blocks around it give
	Refs        []Reference
	Broken      bool // refers to a missing declaration; reported already
	Repeated    bool // of a block with count or for_each
	PerInstance bool // refers to count, each or self, or is another value for each instance
	Momentary   bool // calls what may return other values in each plan or apply

	Hoisted hcl.Expression // of one that is perInstance; nil until needed

	Context *hcl.EvalContext // with all refs but those to an instance; nil until needed
	Result  *Result          // of one that is not perInstance; nil until evaluated
}

// Result is the outcome of an evaluation. Without ok it failed, and why is
// reported already.
type Result struct {
	Value   cty.Value
	Context *hcl.EvalContext
	OK      bool
}

func newExpression(a *hclsyntax.Attribute, mode language.Mode) *Expression {
	return &Expression{Name: a.Name, Mode: mode, Expr: a.Expr, Range: a.SrcRange}
}

// anew is a copy that is evaluated for itself.
func (x *Expression) anew() *Expression {
	c := *x
	c.Forget()
	return &c
}

// Forget drops what was made of the values that it refers to.
func (x *Expression) Forget() { x.Context, x.Result, x.Hoisted = nil, nil, nil }
