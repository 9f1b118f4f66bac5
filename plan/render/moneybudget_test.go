package render

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestMoneyBudget(t *testing.T) {
	b := plan.MoneyBudget{
		Namespace: schema.Address{Kind: schema.KindNamespace, Name: "rl"}, Action: schema.CostHold, Month: "2026-11",
		Used: state.Dollars{Low: 100, High: 130}, Counted: 130, Limit: 20000, Ends: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
	}
	soon, spent := b, b
	soon.PlannedPerHour, soon.ExhaustedAt = state.Dollars{Low: 900, High: 1000}, time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC)
	spent.Level, spent.Action, spent.Unpriced = state.BudgetExhausted, schema.CostStop, 2.5
	for want, b := range map[string]plan.MoneyBudget{
		"the cost budget of namespace.rl is $20,000.00 for 2026-11, of which $100.00–$130.00 are used (1%).":                                                                                                                                                                     b,
		"the cost budget of namespace.rl is $20,000.00 for 2026-11, of which $100.00–$130.00 are used (1%); at $900.00–$1,000.00 an hour it is used up on 2026-11-27 09:30 (UTC), and then new work is held.":                                                                    soon,
		"the cost budget of namespace.rl is $20,000.00 for 2026-11, of which $100.00–$130.00 are used (1%), and 2.5 hours of slices whose price is not known; it is used up: what runs is stopped and new work is held until 2026-12-01 (UTC) or until max_per_month is raised.": spent,
	} {
		if got := MoneyBudget(&b); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
