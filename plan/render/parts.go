package render

import (
	"bytes"

	"github.com/fray-ml/fray/plan"
)

// Parts are the sections of a plan's text one by one, for a caller that arranges them
// otherwise. They are lines of a diff: the mark of a line, "+", "-" or "~", is in its first
// column, and a line without one begins with a blank or "#". Sections have no titles; one
// without content is empty.
type Parts struct {
	Blocks []Block // the changes, in order
	// Moved are the amendments that do not stand with a change.
	Moved, Outputs, Drift, Notes, Blocked, Pending []Entry
	Capacity, Expiries                             []string // a line each
	CostKinds                                      []string // a line each, without a full stop
	Schedules, MoneyBudgets                        []string // a line each
}

// Entry is the text about one address, or about several for which the same is to be said.
type Entry struct {
	Text  string
	Count int
}

// Block is the text about one change, or about several alike in a row.
type Block struct {
	Changes []plan.Change
	Text    string
}

// Split is a plan in parts. Colors are left out.
func Split(pl *plan.Plan, opts Options) Parts {
	var buf bytes.Buffer
	opts.Color = false
	p := newPrinter(&buf, opts)
	p.diff = true
	take := func() string {
		_ = p.w.Flush() // a buffer takes everything
		text := buf.String()
		buf.Reset()
		return text
	}
	var parts Parts
	into := func(list *[]Entry) func(int) {
		return func(count int) { *list = append(*list, Entry{Text: take(), Count: count}) }
	}
	p.eachAmendment(pl, p.noteAmended(pl), into(&parts.Moved))
	parts.Blocks = p.blocks(pl.Changes, take)
	if pl.OutputsChange() {
		done := into(&parts.Outputs)
		p.eachOutput(pl, p.outputPad(pl), func() { done(1) })
		parts.Outputs[len(parts.Outputs)-1].Text += take() // how many are hidden
	}
	p.eachRemark(driftOf(pl.Drift), into(&parts.Drift))
	p.eachRemark(notesOf(pl.Changes), into(&parts.Notes))
	p.eachRemark(blockedOf(pl.Blocked), into(&parts.Blocked))
	p.eachRemark(pendingOf(listed(pl)), into(&parts.Pending))
	for _, c := range pl.Capacity {
		if c.Before != (plan.Amount{}) || c.After != (plan.Amount{}) {
			parts.Capacity = append(parts.Capacity, Capacity(c))
		}
	}
	for _, e := range pl.Expiries {
		p.expiries([]plan.Expiry{e})
		parts.Expiries = append(parts.Expiries, take())
	}
	for i := range pl.Costs {
		parts.CostKinds = append(parts.CostKinds, costLine(&pl.Costs[i]))
	}
	for i := range pl.Schedules {
		if s := &pl.Schedules[i]; s.Changed || p.verbose {
			parts.Schedules = append(parts.Schedules, s.Addr.String()+": "+scheduleLine(s))
		}
	}
	for i := range pl.MoneyBudgets {
		parts.MoneyBudgets = append(parts.MoneyBudgets, MoneyBudget(&pl.MoneyBudgets[i]))
	}
	return parts
}

// blocks are the changes, with those that are alike in one.
func (p *printer) blocks(changes []plan.Change, take func() string) []Block {
	var blocks []Block
	for i := 0; i < len(changes); {
		first := i
		c := &changes[i]
		i++
		if c.Verb == plan.VerbNone {
			continue
		}
		p.block(c)
		if !p.verbose {
			i += p.fold(c, changes[i:])
		}
		blocks = append(blocks, Block{Changes: changes[first:i], Text: take()})
	}
	return blocks
}
