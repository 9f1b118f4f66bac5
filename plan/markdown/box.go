package markdown

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

// Boxes are quotes that GitHub and GitLab show as alerts, and other renderers as quotes.

// caution is the section of a box with a line for each unit.
func caution(kind, text, noun string, units []unit) section {
	return section{open: "> [!" + kind + "]\n> " + text + "\n>\n", units: units, noun: noun, share: 4}
}

// item is a line of a list within a box.
func item(text string, count int) unit { return unit{text: "> - " + text + "\n", count: count} }

// runningBox lists what a plan ends that runs.
func runningBox(pl *plan.Plan) section {
	blocked := map[schema.Address]bool{}
	for i := range pl.Blocked {
		blocked[pl.Blocked[i].Addr] = true
	}
	changes := map[schema.Address]*plan.Change{}
	for i := range pl.Changes {
		changes[pl.Changes[i].Addr] = &pl.Changes[i]
	}
	kind, all := "WARNING", []ending{}
	for i := range pl.Running {
		r := &pl.Running[i]
		if blocked[r.Addr] || changes[r.Addr] == nil {
			continue
		}
		if r.Verb != plan.VerbRestart {
			kind = "CAUTION"
		}
		all = append(all, ending{r, changes[r.Addr], forcedBy(changes[r.Addr])})
	}
	var groups [][]ending
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i].alike(&all[i+n]) {
			n++
		}
		if n < foldFrom {
			n = 1
		}
		groups = append(groups, all[i:i+n])
		i += n
	}
	// What ran longest stands first, so that it is not what is cut.
	slices.SortStableFunc(groups, func(a, b []ending) int { return cmp.Compare(mostSeconds(b), mostSeconds(a)) })
	var units []unit
	for _, group := range groups {
		units = append(units, item(endingText(group), len(group)))
	}
	text := "**Runs now, and is ended by this plan (" + strconv.Itoa(len(all)) + "):**"
	return caution(kind, text, "that run", units)
}

// foldFrom is how many alike addresses in a row are shown as one.
const foldFrom = 3

// ending is what runs and is ended by a change.
type ending struct {
	*plan.Running
	change *plan.Change
	forced string
}

func (e *ending) alike(o *ending) bool {
	return !e.Addr.Key.IsZero() && e.Addr.Base() == o.Addr.Base() && e.Verb == o.Verb && e.forced == o.forced && e.change.ActionReason == o.change.ActionReason
}

func endingText(all []ending) string {
	first, last := &all[0], &all[len(all)-1]
	text := code(first.Addr.String())
	if len(all) > 1 {
		text += " … " + code(last.Addr.String()) + " (" + strconv.Itoa(len(all)) + ")"
	}
	text += " will be " + bold(first.Verb) + ": " + ranFor(all)
	if known := checkpointText(first.Checkpoint); known != "" && same(all) {
		text += "; " + known
	}
	if first.forced != "" {
		text += "; " + first.forced
	}
	return text
}

func mostSeconds(all []ending) int64 {
	most := int64(0)
	for i := range all {
		most = max(most, all[i].Seconds)
	}
	return most
}

// same reports whether all keep their checkpoints in one place.
func same(all []ending) bool {
	for i := range all {
		if a, b := all[0].Checkpoint, all[i].Checkpoint; a != b && (a == nil || b == nil || *a != *b) {
			return false
		}
	}
	return true
}

func bold(v plan.Verb) string {
	switch v {
	case plan.VerbRestart:
		return "**restarted**"
	case plan.VerbReplace:
		return "**replaced**"
	case plan.VerbDelete:
		return "**deleted**"
	case plan.VerbNone, plan.VerbCreate, plan.VerbUpdate:
	}
	return "**changed**"
}

// ranFor is for how long they have run.
func ranFor(all []ending) string {
	shortest, most := all[0].Duration(), all[0].Duration()
	for i := range all {
		shortest, most = min(shortest, all[i].Duration()), max(most, all[i].Duration())
	}
	text := lasted(most)
	if shortest != most {
		text = lasted(shortest) + " to " + text
	}
	first := &all[0]
	switch {
	case first.Addr.Kind == schema.KindReservation:
		return plural(first.Slices, "slice") + " up for " + text
	case len(all) == 1:
		return fmt.Sprintf("attempt %d has run for %s", first.Attempt, text)
	}
	return "they have run for " + text
}

func lasted(d time.Duration) string {
	if d < time.Second {
		return "less than a second"
	}
	return render.Duration(d)
}

func checkpointText(c *plan.Checkpoint) string {
	switch {
	case c == nil:
		return ""
	case c.Last == "":
		return "keeps checkpoints in " + code(c.Place)
	}
	return "last checkpoint " + code(c.Last) + ", " + lasted(c.Age()) + " old, in " + code(c.Place)
}

// mostForced is how many attributes are named that force something.
const mostForced = 5

// forcedBy is what makes a plan end what runs.
func forcedBy(c *plan.Change) string {
	var paths []string
	more := 0
	for i := range c.Attrs {
		switch a := c.Attrs[i]; {
		case a.Verb != c.Verb:
		case len(paths) == mostForced:
			more++
		default:
			paths = append(paths, code(a.Path))
		}
	}
	var parts []string
	if len(paths) > 0 && c.Verb != plan.VerbDelete {
		text := "forced by " + strings.Join(paths, ", ")
		if more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text)
	}
	if c.Reason != "" {
		parts = append(parts, code(c.Reason))
	}
	return strings.Join(parts, "; ")
}

// blockedBox states that nothing of a plan is carried out.
func blockedBox(pl *plan.Plan) section {
	var units []unit
	for i := range pl.Blocked {
		b := &pl.Blocked[i]
		units = append(units, item(code(b.Addr.String())+" is not to be "+string(b.Verb)+"d: "+message(b.Detail), 1))
	}
	return caution("CAUTION", "**Blocked by prevent_destroy, and all of this plan with it:**", "blocked changes", units)
}

// problemBox lists problems as a box.
func problemBox(problems []Problem) section {
	units := make([]unit, 0, len(problems))
	for i := range problems {
		units = append(units, item(problemText(&problems[i]), 1))
	}
	return caution("CAUTION", "**Errors:**", "errors", units)
}

func problemText(p *Problem) string {
	text := ""
	if p.File != "" {
		at := p.File
		if p.Line > 0 {
			at += fmt.Sprintf(":%d", p.Line)
		}
		text += code(at) + ": "
	}
	text += code(p.Summary)
	if p.Detail != "" {
		text += ": " + message(p.Detail)
	}
	return text
}

func errorsOf(problems []Problem) []Problem {
	var errors []Problem
	for _, p := range problems {
		if p.Severity == SeverityDeny {
			errors = append(errors, p)
		}
	}
	return errors
}

// policyBox lists the policies that deny a plan.
func policyBox(results []PolicyResult) section {
	var units []unit
	for i := range results {
		if results[i].Denies() {
			units = append(units, item(policyText(&results[i]), 1))
		}
	}
	return caution("CAUTION", "**Denied by policy: this plan is not carried out.**", "policies that deny", units)
}

func policyText(r *PolicyResult) string {
	text := code(r.Name) + " (" + string(r.Severity) + ") " + string(r.Status)
	if r.Message != "" {
		text += ": " + message(r.Message)
	}
	if r.Status == PolicyOverridden {
		text += "; allowed by " + code(r.By)
		if r.Reason != "" {
			text += ": " + message(r.Reason)
		}
	}
	return text
}
