package configs

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/schema"
)

// Runs reports whether a kind is one that can be waited for.
func Runs(k schema.Kind) bool {
	switch k {
	case schema.KindJob, schema.KindJobGroup, schema.KindActorService:
		return true
	case schema.KindNamespace, schema.KindReservation, schema.KindNotification:
	}
	return false
}

// Dependency is one entry of depends_on.
type Dependency struct {
	Reference
	Expr hcl.Expression
}

// Dependencies reads depends_on: references to what runs, and to modules and
// data that come of it. Mistakes go to r.
func (m *Module) Dependencies(b *Block, r *diagnose.Report) []Dependency {
	x := b.Attr("depends_on")
	if x == nil {
		return nil
	}
	exprs, diags := hcl.ExprList(x.Expr)
	if diags.HasErrors() {
		r.ErrorAt(x.Expr.Range(), "Invalid value for depends_on", "Write a list of references, such as [job.prepare, job_group.train].")
		return nil
	}
	var deps []Dependency
	for _, expr := range exprs {
		traversal, diags := hcl.AbsTraversalForExpr(expr)
		if diags.HasErrors() {
			r.ErrorAt(expr.Range(), "Invalid value for depends_on", "Write a reference without quotes, such as job.prepare.")
			continue
		}
		ref, d := m.reference(traversal, Allowed{})
		root := ref.Symbol.Root
		switch {
		case d != nil:
			r.Add(d)
		case root == RootModule, root == RootData, root == RootAddressed && Runs(ref.Addr.Kind):
			deps = append(deps, Dependency{ref, expr})
		default:
			r.ErrorAt(expr.Range(), "Invalid value for depends_on", "Only a job, a job_group, an actor_service, a module or a data block can be waited for.")
		}
	}
	return deps
}
