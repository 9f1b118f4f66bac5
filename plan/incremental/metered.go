package incremental

import "github.com/fray-ml/fray/state"

// Metered returns doc with another metering. Where doc is what the last plan led to, the next
// call of Diff goes on from it: of the metering, plans read budgets only (budget.go).
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
