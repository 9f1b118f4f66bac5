package snapshot

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
)

// findBudgets finds how budgets of money stand. The plan is made again when that changes.
func findBudgets(d *Draft) {
	budgets := accounting.Budgets(d.Desired, d.Doc.Metering, d.Now)
	if len(budgets) == 0 {
		return
	}
	d.Money = make(map[string]*plan.MoneyBudget, len(budgets))
	for i := range budgets {
		b := &budgets[i]
		d.Money[b.Namespace.Scoped()] = b
		d.WakeAt(b.ChangesAt)
	}
}
