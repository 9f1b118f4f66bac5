package schema

// CostBudget is what a namespace may cost in a calendar month, in UTC. The zero CostBudget is
// none.
type CostBudget struct {
	MaxPerMonth float64    `json:"max_per_month,omitempty"` // US dollars; 0: no limit
	Action      CostAction `json:"action,omitempty"`
	// WarnAt is the part of MaxPerMonth from which it is nearly used; 0: DefaultWarnAt.
	WarnAt float64 `json:"warn_at,omitempty"`
	// Price is which end of the estimates counts.
	Price PriceEnd `json:"price,omitempty"`
}

// DefaultWarnAt is the part of a budget from which it is nearly used.
const DefaultWarnAt = 0.8

// CostAction is a closed set of what follows from a budget that is used up.
type CostAction string

// The actions. The zero CostAction is CostWarn.
const (
	CostWarn CostAction = "warn" // it is reported
	CostHold CostAction = "hold" // new work waits for the next month, what runs goes on
	CostStop CostAction = "stop" // what runs is stopped until the next month, too
)

// CostActions are all of them.
func CostActions() []CostAction { return []CostAction{CostWarn, CostHold, CostStop} }

// PriceEnd is a closed set of the ends of an estimate.
type PriceEnd string

// The ends. The zero PriceEnd is PriceHigh.
const (
	PriceHigh PriceEnd = "high"
	PriceLow  PriceEnd = "low"
)

// PriceEnds are both of them.
func PriceEnds() []PriceEnd { return []PriceEnd{PriceHigh, PriceLow} }
