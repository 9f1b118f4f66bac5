package lifecycle

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A namespace whose budget of money is used up gives no slices to new work, and with action
// stop those of its jobs that have some give them back: their attempts are stopped as for any
// other request, and what they did counts as neither a failure nor a preemption. They begin
// again when the month turns or the budget is raised.

// HeldForMoney is why a job of a namespace waits for money, none if it does not.
func HeldForMoney(b *plan.MoneyBudget) plan.Reason {
	if b == nil || !b.Holds() {
		return plan.Reason{}
	}
	return plan.Because(plan.WaitBudget, BudgetUsed(b))
}

// BudgetUsed is what people read of a budget that is used up. It does not change while that
// is so, though what is used does.
func BudgetUsed(b *plan.MoneyBudget) string {
	return fmt.Sprintf("%s has used its cost budget of %s for %s: held until %s (UTC), or until max_per_month is raised",
		b.Namespace, change.Dollars(b.Limit), b.Month, b.Ends.Format("2006-01-02"))
}

// stopForMoney ends a job that is to give back what it has for a budget of money. It reports
// false of others.
func stopForMoney(d *Jobs, addr schema.Address) bool {
	j := d.Next.Jobs[addr]
	if j.YieldsTo.Kind != schema.KindNamespace {
		b := d.Money[j.Spec.Namespace]
		if b == nil || !b.Stops() || !j.YieldsTo.IsZero() || !j.Running() && len(j.Slices)+len(j.Staged) == 0 {
			return false
		}
		if j.Running() {
			d.Drift(plan.Drift{Kind: plan.DriftBudget, Addr: addr, Found: BudgetUsed(b), Then: "it is stopped, and begins again after that"})
		}
		d.Edit(addr).YieldsTo = b.Namespace
	}
	why := "stopped for the cost budget of " + d.Next.Jobs[addr].YieldsTo.String()
	if d.Next.Jobs[addr].Running() {
		if d.stopAttempt(addr, schema.TaskKilled, why); d.Next.Jobs[addr].Running() {
			return true
		}
	}
	if d.Released(addr, state.Termination{Cause: state.CauseBudget, Text: why}) {
		d.Tally(addr)
		e := d.Edit(addr)
		e.YieldsTo = schema.Address{}
		if !e.Status.Ended() {
			e.Status = schema.JobPending
		}
	}
	return true
}
