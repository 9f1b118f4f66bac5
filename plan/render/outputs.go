package render

import (
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/plan"
)

// outputs lists the outputs that get another value.
func (p *printer) outputs(pl *plan.Plan) {
	if !pl.OutputsChange() {
		return
	}
	p.print(p.paint(bold, "Changes to Outputs:"), "\n\n")
	p.eachOutput(pl, p.outputPad(pl), func() {})
	p.print("\n")
}

// outputPad is how wide the names of the outputs that are shown are.
func (p *printer) outputPad(pl *plan.Plan) int {
	pad := 0
	for i := range pl.Outputs {
		if c := &pl.Outputs[i]; c.Verb != plan.VerbNone || p.verbose {
			pad = max(pad, utf8.RuneCountInString(keyName(c.Name)))
		}
	}
	return pad
}

// eachOutput calls done after each output that gets another value.
func (p *printer) eachOutput(pl *plan.Plan, pad int, done func()) {
	hidden := 0
	for i := range pl.Outputs {
		c := &pl.Outputs[i]
		if c.Verb == plan.VerbNone && !p.verbose {
			hidden++
			continue
		}
		name := keyName(c.Name)
		head := name + strings.Repeat(" ", pad-utf8.RuneCountInString(name)) + " = "
		a := &plan.AttrChange{Path: c.Name, Before: c.Before, After: c.After, Sensitive: c.Sensitive, Unknown: c.Unknown, Verb: c.Verb}
		if c.Verb == plan.VerbUpdate && !c.Sensitive && !present(c.Before) {
			a.Before = unknownJSON() // it was recorded before it was known
		}
		p.attribute(0, head, a, c.Verb)
		done()
	}
	p.hidden(0, hidden, "output")
}
