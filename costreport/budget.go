package costreport

import (
	"fmt"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
)

// BudgetText is how a budget of money stands, for people.
func BudgetText(b *plan.MoneyBudget) string {
	exact := accelerators.Price{Low: b.Limit, High: b.Limit}
	text := fmt.Sprintf("Budget of %s: %s of %s in %s (%.0f%%)", b.Namespace, render.Price(accelerators.Price(b.Used)), render.Price(exact), b.Month, 100*b.Counted/b.Limit)
	return text + "."
}
