// Package diag prints diagnostics of the files for people: the position, the source with
// the range marked, the values involved, and the remedy. It makes no diagnostics and
// decides nothing about exit codes. Start with Text; Values is for other forms too.
package diag

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcled"

	"github.com/fray-ml/fray/lang/diagnose"
)

// Text is how diagnostics are written.
type Text struct {
	Files map[string]*hcl.File // by the names that diagnostics use
	Width int                  // columns
	Color bool                 // and a bar at the left, as only a terminal has them
}

const (
	maxProse  = 100 // columns of running text, which is hard to read in longer lines
	maxValues = 8   // values in play that are shown
	gutter    = 6   // columns before the source: "%4d: "
)

// ByPlace returns diagnostics in the order of their places, those without one first.
func ByPlace(diags hcl.Diagnostics) hcl.Diagnostics {
	ordered := slices.Clone(diags)
	slices.SortStableFunc(ordered, func(x, y *hcl.Diagnostic) int { return comparePlaces(x.Subject, y.Subject) })
	return ordered
}

// warningsFirst puts the errors behind the warnings: the last lines on a terminal
// are those that are read.
func warningsFirst(diags hcl.Diagnostics) hcl.Diagnostics {
	ordered := ByPlace(diags)
	slices.SortStableFunc(ordered, func(x, y *hcl.Diagnostic) int { return -cmp.Compare(x.Severity, y.Severity) })
	return ordered
}

// Write writes diagnostics, warnings before errors, each by its place.
func (t *Text) Write(w io.Writer, diags hcl.Diagnostics) error {
	for _, d := range warningsFirst(diags) {
		if _, err := io.WriteString(w, t.text(d)); err != nil {
			return err
		}
	}
	return nil
}

// text is one diagnostic with an empty line behind it.
func (t *Text) text(d *hcl.Diagnostic) string {
	lines := []string{t.heading(d), ""}
	if d.Subject != nil {
		for _, line := range wrapped(t.location(d), t.room()-2) {
			lines = append(lines, "  "+line)
		}
		lines = append(lines, t.source(d)...)
		lines = append(lines, t.values(d)...)
		lines = append(lines, "")
	}
	if d.Detail != "" {
		lines = append(lines, wrapped(d.Detail, min(t.room(), maxProse))...)
	}
	if !t.Color {
		return strings.Join(lines, "\n") + "\n\n"
	}
	var b strings.Builder
	bar := func(mark string) string { return t.paint(severityColor(d), mark) }
	b.WriteString(bar("╷") + "\n")
	for _, line := range lines {
		b.WriteString(strings.TrimRight(bar("│")+" "+line, " ") + "\n")
	}
	b.WriteString(bar("╵") + "\n")
	return b.String()
}

// room is how many columns there are beside the bar.
func (t *Text) room() int {
	if t.Color {
		return t.Width - 2
	}
	return t.Width
}

const (
	red    = "31"
	yellow = "33"
	bold   = "1"
	dim    = "2"
)

func (t *Text) paint(code, text string) string {
	if !t.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func severityColor(d *hcl.Diagnostic) string {
	if d.Severity == hcl.DiagWarning {
		return yellow
	}
	return red
}

func comparePlaces(a, b *hcl.Range) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.Filename, b.Filename), cmp.Compare(a.Start.Byte, b.Start.Byte))
}

func (t *Text) heading(d *hcl.Diagnostic) string {
	severity := "Error:"
	if d.Severity == hcl.DiagWarning {
		severity = "Warning:"
	}
	return t.paint(bold+";"+severityColor(d), severity) + " " + t.paint(bold, printable(d.Summary))
}

// location is the position in the files, in which block and in which instance of a
// module.
func (t *Text) location(d *hcl.Diagnostic) string {
	s := fmt.Sprintf("on %s line %d", printable(d.Subject.Filename), d.Subject.Start.Line)
	if file := t.Files[d.Subject.Filename]; file != nil {
		if header := hcled.ContextString(file, d.Subject.Start.Byte); header != "" {
			s += ", in " + printable(header)
		}
	}
	if module := diagnose.ModuleOf(d); module != "" {
		s += " (" + module + ")"
	}
	return s + ":"
}

// source is the lines of the range with the range marked.
func (t *Text) source(d *hcl.Diagnostic) []string {
	file := t.Files[d.Subject.Filename]
	from, to := d.Subject.Start.Byte, d.Subject.End.Byte
	if file == nil || from < 0 || from > to || to > len(file.Bytes) {
		return nil // the file has changed since
	}
	lines := linesOf(file.Bytes, from, max(from, to-1))
	number := d.Subject.Start.Line
	if len(lines) == 1 {
		return t.marked(d, number, lines[0], span{from, to}, "")
	}
	const whole, head = 6, 3 // lines shown of a range: all, or the first ones and the last
	last := len(lines) - 1
	text := t.marked(d, number, lines[0], span{from, from + 1}, " from here")
	for i := 1; i < last; i++ {
		if len(lines) > whole && i >= head {
			text = append(text, "   …:")
			break
		}
		plain, _, _ := lines[i].columns(file.Bytes, span{lines[i].from, lines[i].from})
		cut, _ := window(plain, 0, 1, t.room()-gutter)
		text = append(text, t.numbered(number+i, cut))
	}
	return append(text, t.marked(d, number+last, lines[last], span{to - 1, to}, " to here")...)
}

// marked is one line of source and, below it, the marks.
func (t *Text) marked(d *hcl.Diagnostic, number int, line span, mark span, note string) []string {
	columns, from, to := line.columns(t.Files[d.Subject.Filename].Bytes, mark)
	to = max(to, from+1)
	room := t.room() - gutter
	cut, shift := window(columns, from, to, room)
	marks := strings.Repeat("^", max(1, min(to-shift, room)-(from-shift)))
	return []string{
		t.numbered(number, cut),
		strings.Repeat(" ", gutter+from-shift) + t.paint(bold+";"+severityColor(d), marks+note),
	}
}

func (t *Text) numbered(number int, code string) string {
	return strings.TrimRight(t.paint(dim, fmt.Sprintf("%4d:", number))+" "+code, " ")
}

// values are the values in play, one on a line.
func (t *Text) values(d *hcl.Diagnostic) []string {
	values := Values(d)
	var lines []string
	for i, v := range values {
		if i == maxValues {
			lines = append(lines, fmt.Sprintf("     %s and %d more", t.paint(dim, "├"), len(values)-maxValues))
			break
		}
		text := clipped(printable(v.Traversal+" "+v.Statement), t.room()-gutter-1)
		lines = append(lines, "     "+t.paint(dim, "├")+" "+text)
	}
	return lines
}

// linesOf are the lines, without their ends, that hold the bytes from first to last.
func linesOf(src []byte, first, last int) []span {
	start := bytes.LastIndexByte(src[:first], '\n') + 1
	var lines []span
	for {
		end := len(src)
		if i := bytes.IndexByte(src[start:], '\n'); i >= 0 {
			end = start + i
		}
		lines = append(lines, span{start, end})
		if last <= end || end == len(src) {
			return lines
		}
		start = end + 1
	}
}
