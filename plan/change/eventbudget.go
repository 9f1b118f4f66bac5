package change

import (
	"fmt"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// budgets tells which budgets of money stand otherwise than before.
func (t *teller) budgets(before, next *state.Document) {
	if before.Metering == next.Metering || next.Metering == nil {
		return
	}
	var was map[string]state.BudgetLevel
	if before.Metering != nil {
		was = before.Metering.Levels
	}
	for i := range next.Desired.Namespaces {
		n := &next.Desired.Namespaces[i]
		name := n.Addr.Scoped()
		if level := next.Metering.Levels[name]; level != was[name] {
			t.budget(n, level)
		}
	}
}

func (t *teller) budget(n *schema.Namespace, level state.BudgetLevel) {
	e := state.Event{Kind: state.EventBudget, Addr: n.Addr}
	limit := Dollars(n.Cost.MaxPerMonth)
	switch level {
	case state.BudgetNearly:
		e.Text = fmt.Sprintf("has nearly used its cost budget of %s for the month", limit)
		t.tellAt(state.EventWarn, e)
	case state.BudgetExhausted:
		e.Text = fmt.Sprintf("has used its cost budget of %s for the month", limit)
		t.tellAt(state.EventError, e)
	case state.BudgetWithin:
		e.Text = "is within its cost budget again"
		t.tellAt(state.EventGood, e)
	}
}
