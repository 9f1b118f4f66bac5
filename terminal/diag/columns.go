package diag

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// span is a range of bytes, to exclusive.
type span struct{ from, to int }

const (
	tabStop = 4
	// maxSpan bounds what is laid out of a line on either side of a mark: a line
	// may be as long as a file.
	maxSpan = 4 << 10
)

// columns lays a line of src out on a terminal: what to print in each column,
// "" in the second one of a wide character, and which columns the mark covers.
// Of an endless line it is the part around the mark.
func (line span) columns(src []byte, mark span) (columns []string, from, to int) {
	start := runeStart(src, max(line.from, mark.from-maxSpan))
	end := runeStart(src, min(line.to, max(mark.from, start)+maxSpan))
	from, to = -1, -1
	for at := start; at < end; {
		if from < 0 && at >= mark.from {
			from = len(columns)
		}
		if to < 0 && at >= mark.to {
			to = len(columns)
		}
		r, size := utf8.DecodeRune(src[at:end])
		columns = place(columns, r)
		at += size
	}
	if from < 0 {
		from = len(columns)
	}
	if to < 0 {
		to = len(columns)
	}
	return columns, from, to
}

// place appends what one character takes.
func place(columns []string, r rune) []string {
	switch {
	case r == '\t':
		for pad := tabStop - len(columns)%tabStop; pad > 0; pad-- {
			columns = append(columns, " ")
		}
		return columns
	case r == '\r':
		return columns // of a line's end
	case columnsOf(r) == 0 && len(columns) > 0:
		columns[len(columns)-1] += string(r)
		return columns
	}
	columns = append(columns, string(shown(r)))
	if columnsOf(r) == 2 {
		columns = append(columns, "")
	}
	return columns
}

// shown replaces what a terminal would act on or hide rather than print.
func shown(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return utf8.RuneError
}

// printable is a text that leaves a terminal as it is.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return shown(r)
	}, s)
}

// columnsOf is how wide terminals print a character.
func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

func widthOf(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// window cuts columns to room so that from to to is seen, with … where something
// is left out. shift is by how much everything moved to the left.
func window(columns []string, from, to, room int) (text string, shift int) {
	room = max(room, 8)
	start, end := 0, len(columns)
	if end > room {
		if to > room-1 { // some of what is before the mark, all of the mark if there is room
			lead := max((room-(to-from))/2, 4)
			start = max(0, min(from-lead, end-room))
		}
		end = min(end, start+room)
	}
	part := append([]string(nil), columns[start:end]...)
	if len(part) > 1 && end < len(columns) {
		if part[len(part)-1] == "" { // the second half of a wide character
			part[len(part)-2] = " "
		}
		part[len(part)-1] = "…"
	}
	if start > 0 && len(part) > 0 {
		part[0] = "…"
		if len(part) > 1 && part[1] == "" {
			part[1] = " "
		}
	}
	return strings.Join(part, ""), start
}

// clipped is a text of at most room columns.
func clipped(s string, room int) string {
	columns := []string(nil)
	for _, r := range s {
		columns = place(columns, r)
	}
	text, _ := window(columns, 0, 1, room)
	return text
}

// wrapped breaks prose into lines of at most room columns. Lines that begin with
// a space stay as they are.
func wrapped(prose string, room int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimRight(printable(prose), "\n"), "\n") {
		if strings.HasPrefix(paragraph, " ") {
			lines = append(lines, paragraph)
			continue
		}
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case line == "":
				line = word
			case widthOf(line)+1+widthOf(word) > room:
				lines = append(lines, line)
				line = word
			default:
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// runeStart moves a place back to the start of the character that it is within.
func runeStart(src []byte, at int) int {
	for at > 0 && at < len(src) && !utf8.RuneStart(src[at]) {
		at--
	}
	return at
}
