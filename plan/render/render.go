// Package render shows a plan: [Text] for people, in the manner that users of
// Terraform and OpenTofu read, [JSON] for programs, in the format that
// docs/plan-json.md describes. [Change], [Symbol] and [Duration] are the parts
// that progress and status lines need too.
//
// It decides nothing, knows no clock and no terminal: the caller says how wide
// the output is, whether it may be colored, and what time it is.
//
// Start with Text for the order of the sections, then block.go for one change.
//
// # Rules of what is shown
//
//   - A value that is marked sensitive, or sealed, never reaches an output,
//     whatever else the plan says about it.
//   - Nothing is left out silently: what is hidden is counted ("# (3 unchanged
//     attributes hidden)") or named ("# job.a[1] … job.a[9] (9 more) will be
//     created likewise, differing in command"). Options.Verbose hides nothing.
//   - What waits only for this plan's own work is not listed as pending where
//     its change is.
//   - "No changes." stands alone only if there is nothing to do, nothing waits
//     and nothing failed.
//   - Symbols and words say everything; color only repeats it. The legend names
//     the symbols that occur, and no others.
//   - Text from outside (values, reasons) cannot move the cursor or color the
//     terminal: what is not printable is escaped.
//   - The same plan gives the same bytes.
package render

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
)

// Options say how to show a plan. The zero Options are 80 columns without color.
type Options struct {
	Color   bool // ANSI colors
	Width   int  // columns, 0: 80
	Verbose bool // show every instance and every unchanged attribute
}

// The widths between which lines are broken. Below the least, the indentation
// of nested values would leave no room.
const (
	defaultWidth = 80
	leastWidth   = 40
)

// printer writes the parts of a plan.
type printer struct {
	page
	verbose bool
	amended map[schema.Address]*plan.Amendment // by address, where there are any
}

func newPrinter(w io.Writer, opts Options) *printer {
	width := opts.Width
	if width == 0 {
		width = defaultWidth
	}
	return &printer{
		page:    page{palette: palette{on: opts.Color}, w: bufio.NewWriterSize(w, 1<<16), width: max(width, leastWidth)},
		verbose: opts.Verbose,
	}
}

// Text writes a plan for people.
func Text(w io.Writer, pl *plan.Plan, opts Options) error {
	p := newPrinter(w, opts)
	counts := pl.Counts()
	if text := Narrowed(pl); text != "" {
		p.print(p.paint(bold, "Narrowed:"), " ", text, "\n\n")
	}
	p.legend(counts)
	p.drift(pl.Drift)
	if len(pl.Changes) > counts[plan.VerbNone] || len(pl.Amendments) > 0 {
		p.print("fray will perform the following actions:\n\n")
	}
	p.amendments(pl)
	p.changes(pl.Changes)
	p.outputs(pl)
	noted := p.notes(pl.Changes)
	p.blocked(pl.Blocked)
	pending := listed(pl)
	p.pending(pending)
	p.closing(pl, len(pending), noted || len(pending) > 0)
	p.capacity(pl.Capacity)
	p.expiries(pl.Expiries)
	p.schedules(pl.Schedules)
	p.costs(pl.Costs)
	p.moneyBudgets(pl.MoneyBudgets)
	policyPrinter{p}.policies(pl.Policies)
	return p.flush()
}

// Change writes one change as Text does: its heading and its block.
func Change(w io.Writer, c *plan.Change, opts Options) error {
	p := newPrinter(w, opts)
	p.block(c)
	return p.flush()
}

func (p *printer) legend(counts map[plan.Verb]int) {
	shown := false
	for _, v := range shownVerbs() {
		if counts[v] == 0 {
			continue
		}
		if !shown {
			p.print("Actions are indicated with the following symbols:\n")
			shown = true
		}
		p.print(Symbol(v, p.on), " ", wordsOf(v).legend, "\n")
	}
	if shown {
		p.print("\n")
	}
}

func (p *printer) changes(changes []plan.Change) {
	for i := 0; i < len(changes); {
		c := &changes[i]
		if c.Verb == plan.VerbNone {
			i++
			continue
		}
		p.block(c)
		i++
		if !p.verbose {
			i += p.fold(c, changes[i:])
		}
		p.print("\n")
	}
}

// notes lists what stays as it is although a reader may expect otherwise, and
// reports whether there was anything.
func (p *printer) notes(changes []plan.Change) bool {
	notes := notesOf(changes)
	p.remarks("Left as it is:", notes)
	return len(notes) > 0
}

func notesOf(changes []plan.Change) []remark {
	var notes []remark
	for i := range changes {
		if c := &changes[i]; c.Verb == plan.VerbNone && c.Reason != "" && !c.Addr.IsLaunched() {
			notes = append(notes, remark{addr: c.Addr, lines: []labeled{{text: c.Reason}}})
		}
	}
	return notes
}

// blocked lists the changes above that are not made.
func (p *printer) blocked(rejections []plan.BlockedChange) {
	p.remarks("Refused by prevent_destroy, and all of this plan with it:", blockedOf(rejections))
}

func blockedOf(rejections []plan.BlockedChange) []remark {
	remarks := make([]remark, 0, len(rejections))
	for i := range rejections {
		r := &rejections[i]
		remarks = append(remarks, remark{addr: r.Addr, lines: []labeled{{text: protectionText(r.By) + ": it is not to be " + past(r.Verb) + "."}}})
	}
	return remarks
}

func protectionText(by plan.Protection) string {
	switch by {
	case lifecycle.ByState:
		return "The state remembers it as protected"
	case lifecycle.ByFiles:
	}
	return "Its lifecycle protects it"
}

func past(v plan.Verb) string { return string(v) + "d" }

func (p *printer) drift(drift []plan.Drift) {
	p.remarks("Found since the last apply:", driftOf(drift))
}

func driftOf(drift []plan.Drift) []remark {
	remarks := make([]remark, 0, len(drift))
	for i := range drift {
		d := &drift[i]
		r := remark{addr: d.Addr, slice: d.Slice, lines: []labeled{{"found", d.Found}, {"then", d.Then}}}
		remarks = append(remarks, r)
	}
	return remarks
}

func (p *printer) pending(pending []plan.Pending) {
	p.remarks("Pending, each until what it waits for is there:", pendingOf(pending))
}

func pendingOf(pending []plan.Pending) []remark {
	remarks := make([]remark, 0, len(pending))
	for i := range pending {
		r := remark{addr: pending[i].Addr}
		for _, reason := range pending[i].Reasons {
			r.lines = append(r.lines, labeled{text: reason})
		}
		remarks = append(remarks, r)
	}
	return remarks
}

// listed is what a plan has to say about waiting. What is underway anyway is
// left to its change, where there is one.
func listed(pl *plan.Plan) []plan.Pending {
	underway := func(p plan.Pending) bool { return p.Underway }
	if !slices.ContainsFunc(pl.Pending, underway) {
		return pl.Pending
	}
	isChanged := changedIn(pl.Changes)
	var out []plan.Pending
	for i := range pl.Pending {
		if p := &pl.Pending[i]; !p.Underway || !isChanged(p.Addr) {
			out = append(out, *p)
		}
	}
	return out
}

// changedIn returns a function that reports whether something changes at an address. Asked
// in the order of the changes, it passes over them once.
func changedIn(changes []plan.Change) func(schema.Address) bool {
	next := 0
	var changed map[schema.Address]bool // made when it is asked in another order
	return func(addr schema.Address) bool {
		for ; changed == nil && next < len(changes); next++ {
			if c := &changes[next]; c.Addr == addr {
				return c.Verb != plan.VerbNone
			}
		}
		if changed == nil {
			changed = map[schema.Address]bool{}
			for i := range changes {
				if c := &changes[i]; c.Verb != plan.VerbNone {
					changed[c.Addr] = true
				}
			}
		}
		return changed[addr]
	}
}

// closing writes the counts, or why there are none.
func (p *printer) closing(pl *plan.Plan, pending int, remarked bool) {
	counts := pl.Counts()
	title, text := "No changes.", "What runs is what the files ask for."
	switch {
	case pl.Mode == plan.ModeRefreshOnly:
		title, text = recording(pl)
	case pl.Mode == plan.ModeDestroy && pl.Empty():
		text = "There is nothing to destroy."
	case counts[plan.VerbNone] < len(pl.Changes) || len(pl.Amendments) > 0:
		title, text = "Plan:", Counts(pl)+"."+besides(pl, pending)
	case pl.OutputsChange():
		title, text = "Plan:", "outputs change, and nothing that runs."+besides(pl, pending)
	case len(pl.Drift) > 0:
		title, text = "No changes asked for.", "What was found since the last apply is listed above."
	case len(pl.Actions) > 0:
		title, text = "No changes asked for.", fmt.Sprintf("%s of what was begun %s still to be done.",
			plural(len(pl.Actions), "step"), isAre(len(pl.Actions)))
	case remarked:
		text = "But for what is listed above, what runs is what the files ask for."
	}
	p.print(p.paint(bold, title), " ", text, "\n")
}

// recording is the closing line of a plan that changes the state alone.
func recording(pl *plan.Plan) (title, text string) {
	if pl.Empty() {
		return "No changes.", "The state records what was observed."
	}
	return "Refresh only:", fmt.Sprintf("%s to record in the state. Nothing that runs is changed.", plural(len(pl.Drift), "difference"))
}

// besides counts what a plan lists beside its changes.
func besides(pl *plan.Plan, pending int) string {
	var parts []string
	if n := len(pl.Blocked); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" refused")
	}
	if n := len(pl.Drift); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" found since the last apply")
	}
	if pending > 0 {
		parts = append(parts, strconv.Itoa(pending)+" pending")
	}
	if len(parts) == 0 {
		return ""
	}
	return " Besides: " + strings.Join(parts, ", ") + "."
}

// Counts are the numbers of a plan's changes and amendments: "1 to move, 3 to create, 0 to
// delete".
func Counts(pl *plan.Plan) string {
	before, after := amendCounts(pl)
	return before + countList(pl.Counts()) + after
}

// countList is "3 to create, 1 to restart, 0 to delete": creations and
// deletions always, the others where there are any.
func countList(counts map[plan.Verb]int) string {
	var parts []string
	for _, v := range shownVerbs() {
		if n := counts[v]; n > 0 || v == plan.VerbCreate || v == plan.VerbDelete {
			parts = append(parts, strconv.Itoa(n)+" to "+string(v))
		}
	}
	return strings.Join(parts, ", ")
}
