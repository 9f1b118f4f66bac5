package snapshot

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
)

// findBudgets finds how budgets of money stand. The plan is made again when that changes.
func (d *Draft) findBudgets() {
	budgets := accounting.Budgets(d.Desired, d.Doc.Metering, d.Now)
	if len(budgets) == 0 {
		return
	}
	d.money = make(map[string]*plan.MoneyBudget, len(budgets))
	for i := range budgets {
		b := &budgets[i]
		d.money[b.Namespace.Scoped()] = b
		d.WakeAt(b.ChangesAt)
	}
}

// MoneyBudget is the budget of money of a job's namespace, nil if it has none.
func (d *Draft) MoneyBudget(namespace string) *plan.MoneyBudget { return d.money[namespace] }
