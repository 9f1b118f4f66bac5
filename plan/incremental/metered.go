package incremental

import (
	"time"

	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Metered returns doc with another metering. Where doc is what the last plan led to, the next
// call of Diff goes on from it: of the metering, plans read nothing but how budgets of money
// stand, and one that stands otherwise has everything decided anew.
func (p *Planner) Metered(doc *state.Document, m *state.Metering) *state.Document {
	if doc.Metering == m {
		return doc
	}
	next := *doc
	next.Metering = m
	if doc == p.last {
		p.last = &next
	}
	return &next
}

// moneyLevel is how a budget of money stands, as far as plans depend on it.
type moneyLevel struct {
	namespace schema.Address
	month     string
	holds     bool
	stops     bool
	limit     float64
}

func moneyLevels(desired *schema.Desired, doc *state.Document, now time.Time) []moneyLevel {
	var levels []moneyLevel
	for _, b := range accounting.Budgets(desired, doc.Metering, now) {
		levels = append(levels, moneyLevel{b.Namespace, b.Month, b.Holds(), b.Stops(), b.Limit})
	}
	return levels
}
