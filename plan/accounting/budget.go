package accounting

import (
	"cmp"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Budgets are how the budgets of money of all namespaces stand at a time, in the order in
// which they are declared. What was used since the metering was brought up to date is taken
// to be what all that went on then costs.
func Budgets(desired *schema.Desired, m *state.Metering, now time.Time) []plan.MoneyBudget {
	var all []plan.MoneyBudget
	for i := range desired.Namespaces {
		n := &desired.Namespaces[i]
		if n.Cost.MaxPerMonth > 0 {
			all = append(all, budgetOf(n, m, now))
		}
	}
	return all
}

func budgetOf(n *schema.Namespace, m *state.Metering, now time.Time) plan.MoneyBudget {
	if m == nil {
		m = &state.Metering{}
	}
	if now.Before(m.At) { // the clock went back
		now = m.At
	}
	b := plan.MoneyBudget{
		Namespace: n.Addr, Action: cmp.Or(n.Cost.Action, schema.CostWarn), Limit: n.Cost.MaxPerMonth,
		Month: MonthName(now), Ends: MonthOf(now).AddDate(0, 1, 0),
	}
	s := m.Spent[n.Addr.Scoped()]
	since := m.At
	if m.Month == b.Month {
		b.Used, b.Unpriced = s.Used, s.Unpriced
	} else {
		since = later(m.At, MonthOf(now))
	}
	b.PerHour = s.PerHour
	hours := 0.0
	if !m.At.IsZero() {
		hours = now.Sub(since).Hours()
	}
	b.Used.Low, b.Used.High = b.Used.Low+hours*s.PerHour.Low, b.Used.High+hours*s.PerHour.High
	b.Unpriced += hours * float64(s.UnpricedSlices)
	rate := End(n.Cost.Price, b.PerHour)
	b.Counted = End(n.Cost.Price, b.Used)
	warnAt := cmp.Or(n.Cost.WarnAt, schema.DefaultWarnAt) * b.Limit
	b.ChangesAt = b.Ends
	next := b.Limit
	switch {
	case b.Counted >= b.Limit:
		b.Level = state.BudgetExhausted
		return b
	case b.Counted >= warnAt:
		b.Level = state.BudgetNearly
	default:
		next = warnAt
	}
	if at := reached(next-b.Counted, rate, now); !at.IsZero() && at.Before(b.Ends) {
		b.ChangesAt = at
	}
	return b
}

// Month is what a namespace has used in a month.
type Month struct {
	Namespace     string
	Used, PerHour state.Dollars
	Limit         float64 // of its budget, 0: it has none
}

// MonthOfAll is what each declared namespace has used in the month of a time.
func MonthOfAll(desired *schema.Desired, m *state.Metering, now time.Time) []Month {
	var all []Month
	for i := range desired.Namespaces {
		n := &desired.Namespaces[i]
		b := budgetOf(n, m, now)
		all = append(all, Month{Namespace: n.Addr.Scoped(), Used: b.Used, PerHour: b.PerHour, Limit: n.Cost.MaxPerMonth})
	}
	return all
}

// End is the end of an estimate that a budget counts.
func End(which schema.PriceEnd, d state.Dollars) float64 {
	if which == schema.PriceLow {
		return d.Low
	}
	return d.High
}

// maxAhead is how many hours are foreseen: more than a month has.
const maxAhead = 24 * 366

// reached is when a rest is used up at a rate per hour, rounded up to a second; zero: not
// within a year.
func reached(rest, rate float64, now time.Time) time.Time {
	if rate <= 0 || rest/rate > maxAhead {
		return time.Time{}
	}
	return now.Add(time.Duration(rest / rate * float64(time.Hour))).Truncate(time.Second).Add(time.Second)
}

// Outlook is how budgets stand when a plan is made, what an hour of each namespace will cost
// once it is carried out, and when the budgets will be used up at that rate.
func Outlook(desired *schema.Desired, p *plan.Plan, now time.Time) []plan.MoneyBudget {
	budgets := Budgets(desired, p.Next.Metering, now)
	if len(budgets) == 0 {
		return nil
	}
	price := map[schema.Address]schema.PriceEnd{}
	for i := range desired.Namespaces {
		price[desired.Namespaces[i].Addr] = desired.Namespaces[i].Cost.Price
	}
	planned := change.HourlyOf(desired, p)
	for i := range budgets {
		b := &budgets[i]
		b.PlannedPerHour = planned[b.Namespace.Scoped()]
		if b.Level == state.BudgetExhausted {
			continue
		}
		at := reached(b.Limit-b.Counted, End(price[b.Namespace], b.PlannedPerHour), now)
		if !at.IsZero() && at.Before(b.Ends) {
			b.ExhaustedAt = at
		}
	}
	return budgets
}
