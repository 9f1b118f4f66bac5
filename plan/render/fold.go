package render

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// foldFrom is how many alike changes in a row are shown as one: fewer are
// quicker read than understood from a summary.
const foldFrom = 3

// fold says in a line what of rest happens likewise to what happened to first,
// and returns how many changes that line stands for.
//
// Alike are instances of one block, next to each other in the plan, with the
// same verb and reason, whose attributes have the same paths in the same order,
// each with the same effect. Their values may differ; the attributes that do
// are named. So the range is exact: the plan says the same of everything from
// its first to its last address.
func (p *printer) fold(first *plan.Change, rest []plan.Change) int {
	if first.Addr.Key.IsZero() {
		return 0
	}
	n := 0
	differs := make([]bool, len(first.Attrs))
	for n < len(rest) && alike(first, &rest[n]) && p.sameAmendment(first.Addr, rest[n].Addr) {
		markDifferences(differs, first, &rest[n])
		n++
	}
	if n+1 < foldFrom {
		return 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s … %s (%d more) %s likewise", clean(rest[0].Addr.String()), clean(rest[n-1].Addr.String()), n, will(first))
	var names []string
	for i, d := range differs {
		if d {
			names = append(names, clean(first.Attrs[i].Path))
		}
	}
	if len(names) > 0 {
		b.WriteString(", differing in ")
		b.WriteString(strings.Join(names, ", "))
	}
	p.print("\n")
	p.commented(b.String(), bold)
	return n
}

func alike(a, b *plan.Change) bool {
	if a.Verb != b.Verb || a.Addr.Base() != b.Addr.Base() || len(a.Attrs) != len(b.Attrs) {
		return false
	}
	if a.ActionReason != b.ActionReason {
		return false
	}
	// The words of a deletion name the instance's key.
	if a.Reason != b.Reason && (a.Verb != plan.VerbDelete || a.ActionReason == "") && masked(a.Reason, a.Addr, "") != masked(b.Reason, b.Addr, "") {
		return false
	}
	for i := range a.Attrs {
		x, y := a.Attrs[i], b.Attrs[i]
		if x.Path != y.Path || x.Verb != y.Verb || x.Sensitive != y.Sensitive || x.Unknown != y.Unknown {
			return false
		}
		if !x.Sensitive && leafMark(x, a.Verb) != leafMark(y, b.Verb) {
			return false
		}
	}
	return true
}

// markDifferences sets those of differs whose values are not equal. Sensitive
// values are not looked at: they are shown alike.
func markDifferences(differs []bool, a, b *plan.Change) {
	for i := range a.Attrs {
		x, y := a.Attrs[i], b.Attrs[i]
		if !differs[i] && !x.Sensitive {
			differs[i] = !bytes.Equal(x.Before, y.Before) || !bytes.Equal(x.After, y.After)
		}
	}
}

// remark is what a section says of one address.
type remark struct {
	addr  schema.Address
	slice string // "" where no slice is meant
	lines []labeled
}

type labeled struct{ label, text string }

// remarks writes a section. Remarks on instances of one block that follow each
// other and differ in nothing but their own names are counted after the first.
func (p *printer) remarks(title string, all []remark) {
	if len(all) == 0 {
		return
	}
	p.print(p.paint(bold, title), "\n\n")
	p.eachRemark(all, func(int) {})
	p.print("\n")
}

// eachRemark calls done after each remark, with the number of those that it stands for.
func (p *printer) eachRemark(all []remark, done func(count int)) {
	for i := 0; i < len(all); {
		first := &all[i]
		p.remark(first)
		i++
		n := 0
		for !p.verbose && i+n < len(all) && first.alike(&all[i+n]) {
			n++
		}
		if n+1 < foldFrom {
			n = 0
		} else {
			p.print(p.paint(cyan, fmt.Sprintf("    # likewise %d more of %s", n, clean(first.addr.Base().String()))), "\n")
		}
		i += n
		done(1 + n)
	}
}

func (p *printer) remark(r *remark) {
	name := r.addr.String()
	if r.addr.IsZero() {
		name = r.slice
	}
	p.print(p.paint(bold, p.comment()+clean(name)), "\n")
	labels := 0
	for _, l := range r.lines {
		labels = max(labels, len(l.label))
	}
	for _, l := range r.lines {
		head := "      "
		if labels > 0 {
			head += fmt.Sprintf("%-*s ", labels+1, l.label+":")
		}
		for _, line := range wrapped(l.text, p.width-len(head)) {
			p.print(head, line, "\n")
			head = strings.Repeat(" ", len(head))
		}
	}
}

func (r *remark) alike(o *remark) bool {
	if r.addr.Key.IsZero() || r.addr.Base() != o.addr.Base() || len(r.lines) != len(o.lines) {
		return false
	}
	for i := range r.lines {
		a, b := r.lines[i], o.lines[i]
		if a.label != b.label || masked(a.text, r.addr, r.slice) != masked(b.text, o.addr, o.slice) {
			return false
		}
	}
	return true
}

// masked is text without the names that differ from instance to instance.
func masked(text string, addr schema.Address, slice string) string {
	if slice != "" {
		text = strings.ReplaceAll(text, slice, "\x00")
	}
	return strings.ReplaceAll(text, addr.String(), "\x01")
}
