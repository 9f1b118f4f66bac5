package render

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/plan"
)

// ink is the parameter of an ANSI "select graphic rendition" sequence.
type ink string

const (
	bold   ink = "1"
	red    ink = "31"
	green  ink = "32"
	yellow ink = "33"
	cyan   ink = "36"
	gray   ink = "90"
)

// palette colors text, or leaves it as it is.
type palette struct{ on bool }

func (p palette) paint(k ink, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + string(k) + "m" + s + "\x1b[0m"
}

// mark is the symbol in front of a line within a block.
type mark byte

const (
	markSame   mark = ' '
	markAdd    mark = '+'
	markRemove mark = '-'
	markChange mark = '~'
)

func (p palette) mark(m mark) string {
	switch m {
	case markAdd:
		return p.paint(green, "+")
	case markRemove:
		return p.paint(red, "-")
	case markChange:
		return p.paint(yellow, "~")
	case markSame:
	}
	return " "
}

// words are the ways to speak of a verb.
type words struct {
	legend string // "restart in place: …"
	will   string // "will be restarted in place"
	doing  string // "restarting"
	done   string // "restarted"
}

func wordsOf(v plan.Verb) words {
	switch v {
	case plan.VerbCreate:
		return words{"create", "will be created", "creating", "created"}
	case plan.VerbUpdate:
		return words{"update in place: nothing restarts", "will be updated in place", "updating", "updated"}
	case plan.VerbRestart:
		return words{"restart in place: same slices, new processes", "will be restarted in place", "restarting", "restarted"}
	case plan.VerbReplace:
		return words{"replace: new slices", "will be replaced", "replacing", "replaced"}
	case plan.VerbDelete:
		return words{"delete", "will be deleted", "deleting", "deleted"}
	case plan.VerbNone:
	}
	return words{"leave as it is", "stays as it is", "leaving", "left as it is"}
}

// shownVerbs are the verbs of changes, in the order of the legend and the counts.
func shownVerbs() []plan.Verb {
	return []plan.Verb{plan.VerbCreate, plan.VerbUpdate, plan.VerbRestart, plan.VerbReplace, plan.VerbDelete}
}

// Symbol is a verb's symbol, three columns wide: "  +", "  ~", "-/+", "  -",
// and blanks for what stays as it is.
func Symbol(v plan.Verb, color bool) string {
	p := palette{on: color}
	switch v {
	case plan.VerbCreate:
		return "  " + p.mark(markAdd)
	case plan.VerbUpdate, plan.VerbRestart:
		return "  " + p.mark(markChange)
	case plan.VerbReplace:
		return p.mark(markRemove) + "/" + p.mark(markAdd)
	case plan.VerbDelete:
		return "  " + p.mark(markRemove)
	case plan.VerbNone:
	}
	return "   "
}

// Doing is a verb for a progress line: "creating".
func Doing(v plan.Verb) string { return wordsOf(v).doing }

// Done is a verb for what a progress line ends with: "created".
func Done(v plan.Verb) string { return wordsOf(v).done }

// Clean is text from outside on one line, with unprintable runes escaped.
func Clean(s string) string { return clean(s) }

// clean returns s with unprintable runes escaped, so that a
// value cannot write escape sequences to the terminal. Tabs stay.
func clean(s string) string {
	if isPrintable(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if broken := r == utf8.RuneError && n == 1; r == '\t' || !broken && strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return b.String()
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// wrapped breaks clean text at its newlines and, where it can, at spaces, into
// lines of at most width columns.
func wrapped(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line, columns := "", 0
		for word := range strings.FieldsSeq(clean(paragraph)) {
			n := utf8.RuneCountInString(word)
			if columns > 0 && columns+1+n > width {
				lines = append(lines, line)
				line, columns = "", 0
			}
			if columns > 0 {
				line, columns = line+" ", columns+1
			}
			line, columns = line+word, columns+n
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
