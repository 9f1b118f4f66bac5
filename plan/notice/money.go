package notice

import (
	"time"

	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
)

// MoneyUses are the uses of the budgets of money of namespaces, in this month.
func MoneyUses(doc *state.Document, now time.Time) []BudgetUse {
	var uses []BudgetUse
	for _, b := range accounting.Budgets(&doc.Desired, doc.Metering, now) {
		uses = append(uses, BudgetUse{Namespace: b.Namespace.Scoped(), Unit: UnitDollars, Period: b.Month, Used: b.Counted, Limit: b.Limit})
	}
	return uses
}
