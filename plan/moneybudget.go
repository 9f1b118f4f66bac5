package plan

import (
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// MoneyBudget is how the cost block of a namespace stands at one moment.
type MoneyBudget struct {
	Namespace schema.Address    `json:"namespace"`
	Action    schema.CostAction `json:"action"`
	Level     state.BudgetLevel `json:"level,omitempty"`
	Month     string            `json:"month"` // "2026-11"
	// Used is an estimate of what the month has cost so far, and PerHour of an hour from now on.
	Used    state.Dollars `json:"used"`
	PerHour state.Dollars `json:"per_hour,omitzero"`
	// Counted is the end of Used that is compared with Limit, both in dollars.
	Counted float64 `json:"counted"`
	Limit   float64 `json:"limit"`
	// Unpriced is the time of slices whose price is not known, in hours: it is not counted.
	Unpriced float64   `json:"unpriced_hours,omitempty"`
	Ends     time.Time `json:"ends"` // the month does
	// ChangesAt is when the level changes by time alone, as far as that can be foreseen.
	ChangesAt time.Time `json:"-"`
	// PlannedPerHour is what an hour costs once the plan is carried out, and ExhaustedAt when the
	// budget will be used up at that rate; zero: not in this month. Both are filled in where costs are.
	PlannedPerHour state.Dollars `json:"planned_per_hour,omitzero"`
	ExhaustedAt    time.Time     `json:"exhausted_at,omitzero"`
}

// Holds reports whether new work of the namespace is to wait.
func (b *MoneyBudget) Holds() bool {
	return b.Level == state.BudgetExhausted && (b.Action == schema.CostHold || b.Action == schema.CostStop)
}

// Stops reports whether what runs in the namespace is to be stopped.
func (b *MoneyBudget) Stops() bool {
	return b.Level == state.BudgetExhausted && b.Action == schema.CostStop
}
