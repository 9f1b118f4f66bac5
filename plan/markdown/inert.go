package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/plan/render"
)

// Text from outside is written in one of two ways, in which neither GitHub nor GitLab reads
// any of it: in a code span, and in a fenced code block. Their filters for mentions,
// references, links, emoji, mathematics and quick actions leave code out. There are no
// tables: whether a backslash before a pipe ends a cell differs between renderers.

// How many characters of a text stand in a code span.
const (
	longest        = 240   // of an address or a reason: the code block of its change has all of it
	longestName    = 80    // of a name in the head of the document, which is never cut
	longestMessage = 1_000 // of what stands nowhere else
)

// code is a text as a code span on one line.
func code(text string) string { return codeOf(text, longest) }

// name is a name in the head as a code span.
func name(text string) string { return codeOf(text, longestName) }

// message is a message as a code span.
func message(text string) string { return codeOf(text, longestMessage) }

func codeOf(text string, most int) string {
	text = shortened(text, most)
	ticks := strings.Repeat("`", 1+longestRun(text))
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") {
		text = " " + text + " " // a renderer takes one blank off each end
	}
	return ticks + text + ticks
}

func shortened(text string, most int) string {
	text = render.Clean(text)
	if strings.TrimSpace(text) == "" {
		return "(blank)"
	}
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// fence is the line that begins and ends a code block with such lines in it: longer than
// any run of its characters within, so that none of them ends it.
func fence(texts ...string) string {
	most := 2
	for _, text := range texts {
		most = max(most, longestRun(text))
	}
	return strings.Repeat("`", most+1)
}

// longestRun is the length of the longest run of backticks.
func longestRun(text string) int {
	most, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}

// longestURL is how long a link may be.
const longestURL = 500

// link is a link to an http or https URL, "" for another one, or one with a user's name.
func link(text, to string) string {
	rest, ok := strings.CutPrefix(to, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(to, "http://"); !ok {
			return ""
		}
	}
	host := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host = rest[:end]
	}
	if host == "" || strings.ContainsAny(host, "@\\") {
		return ""
	}
	var b strings.Builder
	for i := range len(to) {
		if c := to[i]; c <= ' ' || c > '~' || strings.IndexByte("<>()[]\\`\"'*_|{}^", c) >= 0 {
			const digits = "0123456789ABCDEF"
			b.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
		} else {
			b.WriteByte(c)
		}
	}
	if b.Len() > longestURL {
		return ""
	}
	return "[" + text + "](<" + b.String() + ">)"
}
