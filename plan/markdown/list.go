package markdown

import (
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
)

// listedVerbs are the verbs of changes in the order of the lists.
func listedVerbs() []plan.Verb {
	return []plan.Verb{plan.VerbCreate, plan.VerbUpdate, plan.VerbRestart, plan.VerbReplace, plan.VerbDelete}
}

// mostNames is how many names a list has. The changes have all of them.
const mostNames = 25

// lists name the addresses by what becomes of them.
func lists(pl *plan.Plan, blocks []render.Block) []section {
	counts := pl.Counts()
	var all []section
	for _, verb := range listedVerbs() {
		if counts[verb] == 0 {
			continue
		}
		s := section{open: "**" + headingOf(verb) + "** (" + grouped(counts[verb]) + ")\n\n", noun: "names to " + string(verb), share: 6}
		for i := 0; i < len(blocks); {
			n := run(blocks[i:])
			if blocks[i].Changes[0].Verb == verb {
				s.units = append(s.units, named(blocks[i:i+n]))
			}
			i += n
		}
		if len(s.units) > mostNames {
			rest := section{units: s.units[mostNames-1:]}
			s.units = append(s.units[:mostNames-1:mostNames-1], unit{text: "- … and " + grouped(rest.count()) + " more\n", count: rest.count()})
		}
		all = append(all, s)
	}
	return all
}

// run is how many blocks from the first one on are of instances of one declaration with one
// verb. Only what follows each other in the plan is one run, so that a range is exact.
func run(blocks []render.Block) int {
	first := &blocks[0].Changes[0]
	n := 1
	for n < len(blocks) && !first.Addr.Key.IsZero() {
		next := &blocks[n].Changes[0]
		if next.Addr.Base() != first.Addr.Base() || next.Verb != first.Verb {
			break
		}
		n++
	}
	return n
}

func named(blocks []render.Block) unit {
	count := 0
	for i := range blocks {
		count += len(blocks[i].Changes)
	}
	tail := blocks[len(blocks)-1].Changes
	text := "- " + code(blocks[0].Changes[0].Addr.String())
	if count > 1 {
		text += " … " + code(tail[len(tail)-1].Addr.String()) + " (" + grouped(count) + ")"
	}
	return unit{text: text + "\n", count: count}
}

func headingOf(v plan.Verb) string {
	switch v {
	case plan.VerbCreate:
		return "Create"
	case plan.VerbUpdate:
		return "Update in place"
	case plan.VerbRestart:
		return "Restart in place"
	case plan.VerbReplace:
		return "Replace"
	case plan.VerbDelete:
		return "Delete"
	case plan.VerbNone:
	}
	return "Leave"
}

// openLines is up to how many lines of changes are shown unfolded.
const openLines = 40

// details are the diffs of all changes. What ends work stands first, so that it is the last
// to be cut.
func details(blocks []render.Block) section {
	s := section{close: "</details>\n", noun: "changes", share: 1}
	lines := 0
	for _, verb := range []plan.Verb{plan.VerbDelete, plan.VerbReplace, plan.VerbRestart, plan.VerbUpdate, plan.VerbCreate} {
		for i := range blocks {
			if b := &blocks[i]; b.Changes[0].Verb == verb {
				s.units = append(s.units, unit{text: fenced("diff", b.Text) + "\n", count: len(b.Changes)})
				lines += strings.Count(b.Text, "\n")
			}
		}
	}
	s.open = detailsOpen("Changes", s.count(), lines <= openLines)
	return s
}

func detailsOpen(title string, count int, open bool) string {
	tag := "<details>"
	if open {
		tag = "<details open>"
	}
	return tag + "<summary>" + title + " (" + grouped(count) + ")</summary>\n\n"
}

func fenced(info, text string) string {
	f := fence(text)
	return f + info + "\n" + strings.TrimRight(text, "\n") + "\n" + f + "\n"
}

// folded is a section of one code block.
func folded(title, info string, entries []render.Entry) section {
	if len(entries) == 0 {
		return section{}
	}
	s := section{noun: "under " + title, share: 6}
	texts := make([]string, len(entries))
	lines := 0
	for i, e := range entries {
		texts[i] = strings.TrimRight(e.Text, "\n") + "\n"
		lines += strings.Count(texts[i], "\n")
		s.units = append(s.units, unit{text: texts[i], count: e.Count})
	}
	f := fence(texts...)
	s.open = detailsOpen(title, s.count(), lines <= openLines/2) + f + info + "\n"
	s.close = f + "\n\n</details>\n"
	return s
}

// lines are entries of a line each.
func lines(all ...[]string) []render.Entry {
	var entries []render.Entry
	for _, some := range all {
		for _, line := range some {
			entries = append(entries, render.Entry{Text: line, Count: 1})
		}
	}
	return entries
}

// costKinds are the costs by kind of slice, with where the prices come from.
func costKinds(parts *render.Parts) []render.Entry {
	entries := lines(parts.CostKinds)
	if len(entries) > 0 {
		entries[len(entries)-1].Text += "\n\nPrices: " + accelerators.PricesFrom + ", without disks and traffic; not your bill."
	}
	return entries
}

// policyList names the policies that do not deny the plan.
func policyList(results []PolicyResult) section {
	s := section{open: "**Policies**\n\n", noun: "policies", share: 6}
	for i := range results {
		if r := &results[i]; !r.Denies() {
			s.units = append(s.units, unit{text: "- " + policyText(r) + "\n", count: 1})
		}
	}
	return s
}

// warningList are the warnings about the files.
func warningList(problems []Problem) section {
	s := section{open: "**Warnings**\n\n", noun: "warnings", share: 6}
	for i := range problems {
		if p := &problems[i]; p.Severity == SeverityWarn {
			s.units = append(s.units, unit{text: "- " + problemText(p) + "\n", count: 1})
		}
	}
	return s
}
