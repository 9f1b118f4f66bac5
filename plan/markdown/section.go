package markdown

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// section is a part of the document that may be cut between its units.
type section struct {
	open  string // before the first unit
	units []unit
	close string // after the last unit
	noun  string // what its units are, for "3 of 20 changes"
	// share is how much of what is left it may take, as 1/share.
	share int
}

// unit is what stands or is left out as a whole: the text about one address, or about
// several for which the same is to be said.
type unit struct {
	text  string
	count int
}

func (s *section) count() int {
	n := 0
	for _, u := range s.units {
		n += u.count
	}
	return n
}

// document is the Markdown in the making, within its limit.
type document struct {
	in       *Input
	limit    Limit
	left     int // characters
	parts    []string
	reserved int      // index of the part that is written last, with what is left
	last     section  // that part
	cut      []string // what is left out
}

// forNotice is room for the sentence about what is left out.
const forNotice = 2_000

func newDocument(in *Input, limit Limit) *document {
	d := &document{in: in, limit: limit, reserved: -1}
	switch {
	case limit.Characters == 0:
		d.left = DefaultCharacters - forNotice
	case limit.Characters < 0:
		d.left = int(^uint(0) >> 1)
	default:
		d.left = max(limit.Characters, LeastCharacters) - forNotice
	}
	return d
}

// fixed adds paragraphs that always stand. The first one is the title.
func (d *document) fixed(paragraphs ...string) {
	for _, text := range paragraphs {
		if text == "" {
			continue
		}
		d.left -= utf8.RuneCountInString(text) + 2
		d.parts = append(d.parts, text)
	}
}

// add adds as many units of a section as there is room for.
func (d *document) add(s section) {
	if len(s.units) == 0 {
		return
	}
	d.parts = append(d.parts, d.fit(s, d.left/max(1, s.share)))
}

// reserve has a section written where it stands now with what all others leave.
func (d *document) reserve(s section) {
	if len(s.units) > 0 {
		d.reserved, d.last = len(d.parts), s
		d.parts = append(d.parts, "")
	}
}

// fit is a section within room characters.
func (d *document) fit(s section, room int) string {
	var b strings.Builder
	used := utf8.RuneCountInString(s.open) + utf8.RuneCountInString(s.close) + 2
	b.WriteString(s.open)
	shown := 0
	for _, u := range s.units {
		n := utf8.RuneCountInString(u.text)
		if used+n > room {
			continue
		}
		used += n
		shown += u.count
		b.WriteString(u.text)
	}
	if all := s.count(); shown < all {
		d.cut = append(d.cut, fmt.Sprintf("%s of %s %s", grouped(all-shown), grouped(all), s.noun))
	}
	if shown == 0 {
		return ""
	}
	b.WriteString(s.close)
	d.left -= used
	return b.String()
}

// String is the document, with what was left out after its title.
func (d *document) String() string {
	if d.reserved >= 0 {
		d.parts[d.reserved] = d.fit(d.last, d.left)
	}
	var b strings.Builder
	for i, part := range d.parts {
		if part == "" {
			continue
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.TrimRight(part, "\n") + "\n")
		if i == 0 && len(d.cut) > 0 {
			b.WriteString("\n" + d.notice() + "\n")
		}
	}
	return b.String()
}

// notice states what is left out, and where the rest is.
func (d *document) notice() string {
	rest := "`fray show PLANFILE` shows all of a saved plan, and `fray plan` all of a new one"
	if d.limit.Rest != "" {
		rest = "the rest: " + code(d.limit.Rest)
	} else if to := link("run", d.in.Run); to != "" {
		rest += "; see the " + to
	}
	return "> [!IMPORTANT]\n> Not shown here, since the text would be too long: " + strings.Join(d.cut, ", ") + ". The counts are of all; " + rest + "."
}

// grouped is a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
