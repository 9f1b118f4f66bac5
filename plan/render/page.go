package render

import (
	"bufio"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/plan"
)

// page is what lines are written on, and where their marks are: behind the indentation, or
// in the first column, as in a diff. Text begins two columns farther to the left in a diff.
// Write errors stick in w and surface at flush.
type page struct {
	palette
	w     *bufio.Writer
	width int
	diff  bool // marks are in the first column
}

// print writes its arguments; bufio keeps the first error for flush.
func (p *page) print(parts ...string) {
	for _, s := range parts {
		_, _ = p.w.WriteString(s)
	}
}

func (p *page) flush() error {
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

func (p *page) indent(columns int) {
	const blanks = "                                                "
	for ; columns > len(blanks); columns -= len(blanks) {
		p.print(blanks)
	}
	p.print(blanks[:columns])
}

// comment is how a line that describes begins.
func (p *page) comment() string {
	if p.diff {
		return "# "
	}
	return "  # "
}

// commented writes text behind the sign of a comment.
func (p *page) commented(text string, k ink) {
	for _, line := range wrapped(text, p.width-4) {
		line = p.comment() + line
		if k != "" {
			line = p.paint(k, line)
		}
		p.print(line, "\n")
	}
}

// symbol is that of a verb before the block of a change.
func (p *page) symbol(v plan.Verb) string {
	s := Symbol(v, p.on)
	if p.diff && v != plan.VerbReplace {
		return s[len(s)-1:]
	}
	return s
}

// shifted is the column of a line's text.
func (p *page) shifted(column int) int {
	if p.diff {
		return column - 2
	}
	return column
}

// marked begins a line whose text begins two columns after a column.
func (p *page) marked(column int, m mark) {
	if p.diff {
		p.print(p.mark(m))
		p.indent(column - 1)
		return
	}
	p.indent(column)
	p.print(p.mark(m), " ")
}

// row writes one line of a block: symbol, space, text.
func (p *page) row(level int, m mark, text ...string) {
	p.marked(4*level+2, m)
	p.print(text...)
	p.print("\n")
}

func (p *page) hidden(level, n int, noun string) {
	if n > 0 {
		p.indent(p.shifted(4*level + 4))
		p.print(p.paint(gray, "# ("+plural(n, "unchanged "+noun)+" hidden)"), "\n")
	}
}

// textLine writes a line of a long string, with its mark two columns before it.
func (p *page) textLine(level int, m mark, line string) {
	if line == "" && m == markSame {
		p.print("\n")
		return
	}
	p.marked(4*level+6, m)
	p.print(line, "\n")
}

func (p *page) fits(level int, head, text string, t tail) bool {
	columns := 4*level + 4 + utf8.RuneCountInString(head) + utf8.RuneCountInString(text) + len(t.end) + len(t.note)
	return columns <= p.width
}

func (p *page) end(s string) string {
	if arrow, ok := strings.CutSuffix(s, "null"); ok {
		return p.paint(yellow, arrow) + p.paint(gray, "null")
	}
	return s
}

func (p *page) note(s string) string {
	if s == " # restarts" {
		return p.paint(yellow, s)
	}
	return p.paint(red, s)
}
