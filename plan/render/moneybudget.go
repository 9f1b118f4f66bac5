package render

import (
	"fmt"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// moneyBudgets writes how the budgets of namespaces stand.
func (p *printer) moneyBudgets(budgets []plan.MoneyBudget) {
	for i := range budgets {
		text := MoneyBudget(&budgets[i])
		if budgets[i].Level != state.BudgetWithin || !budgets[i].ExhaustedAt.IsZero() {
			text = p.paint(yellow, "Warning:") + " " + text
		}
		p.print(text, "\n")
	}
}

// MoneyBudget is how a budget of money stands, and what follows from it.
func MoneyBudget(b *plan.MoneyBudget) string {
	text := fmt.Sprintf("the cost budget of %s is %s for %s, of which %s are used (%.0f%%)",
		clean(b.Namespace.String()), planchange.Dollars(b.Limit), b.Month, Price(accelerators.Price(b.Used)), 100*b.Counted/b.Limit)
	if b.Unpriced > 0 {
		text += fmt.Sprintf(", and %.1f hours of slices whose price is not known", b.Unpriced)
	}
	switch {
	case b.Level == state.BudgetExhausted:
		text += "; it is used up: " + consequence(b.Action) + " until " + b.Ends.Format("2006-01-02") + " (UTC) or until max_per_month is raised"
	case !b.ExhaustedAt.IsZero():
		text += fmt.Sprintf("; at %s an hour it is used up on %s (UTC), and then %s", Price(accelerators.Price(b.PlannedPerHour)), b.ExhaustedAt.Format("2006-01-02 15:04"), consequence(b.Action))
	case b.Level == state.BudgetNearly:
		text += "; it is nearly used up"
	case b.Level == state.BudgetWithin:
	}
	return text + "."
}

// consequence is what follows from a budget that is used up.
func consequence(action schema.CostAction) string {
	switch action {
	case schema.CostHold:
		return "new work is held"
	case schema.CostStop:
		return "what runs is stopped and new work is held"
	case schema.CostWarn:
	}
	return "nothing is held, since its action is warn,"
}
