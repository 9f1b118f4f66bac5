package status

import (
	"fmt"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// ink says whether to colour.
type ink bool

// as is a text as a mood has it.
func (p ink) as(m mood, text string) string {
	if !p {
		return text
	}
	code := ""
	switch m {
	case moodPlain:
		return text
	case moodBad:
		code = "31"
	case moodWaiting:
		code = "33"
	case moodGood:
		code = "32"
	case moodQuiet:
		code = "2"
	case moodTitle:
		code = "1"
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// View draws the screen.
func (s *fullScreen) View() tea.View {
	v := tea.NewView(s.draw())
	v.AltScreen = true
	v.WindowTitle = "fray status"
	return v
}

// draw is the whole screen, a line for each of its rows.
func (s *fullScreen) draw() string {
	var lines []string
	switch {
	case s.help:
		lines = s.helpLines()
	case s.board == nil:
		lines = []string{"Looking …"}
	default:
		s.settle()
		for _, h := range s.board.head {
			lines = append(lines, s.ink.as(h.mood, s.fit(h.text)))
		}
		for k := range paneCount {
			lines = append(lines, s.drawPane(k)...)
		}
	}
	lines = lines[:min(len(lines), max(0, s.height-1))]
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, s.footer()), "\n")
}

// fit is a text in one line of the screen.
func (s *fullScreen) fit(text string) string { return ansi.Truncate(clean(text), s.width, "…") }

func (s *fullScreen) footer() string {
	switch {
	case s.help:
		return ""
	case s.typing:
		return s.fit("/" + s.filter + "▏ Enter keeps it, Esc drops it")
	case s.stale != "":
		return s.ink.as(moodBad, s.fit("not up to date: "+s.stale))
	case s.filter != "":
		return s.ink.as(moodWaiting, s.fit("only \""+s.filter+"\"; Esc shows all"))
	}
	return s.ink.as(moodQuiet, s.fit("q quit  ↑↓ PgUp PgDn scroll  Tab next pane  / filter  ? help"))
}

func (s *fullScreen) helpLines() []string {
	text := `fray status --watch

  q, Ctrl-C         leave; nothing that runs is touched
  ↑ ↓, k j          a row up, down
  PgUp PgDn, Space  a page up, down
  Home End, g G     to the first, to the last
  Tab, Shift-Tab    the next pane, the one before
  /                 show only rows with a text; Esc shows all again
  ?                 this

Jobs are in the order in which they need attention: what failed, what waits,
what is coming up, what runs, what has ended. Jobs that a job launched are
below it. Everything is looked at anew every second.

Any key goes back.`
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	return lines
}

// drawPane is a pane's title, the names of its columns, and the rows in sight.
func (s *fullScreen) drawPane(k paneKind) []string {
	room := s.room[k]
	if room == 0 {
		return nil
	}
	p := &s.board.panes[k]
	begin, end := s.offset[k], min(s.offset[k]+room, s.count(k))
	cells := make([][]string, 0, room)
	rows := make([]row, 0, room)
	for i := begin; i < end; i++ {
		r := s.row(k, i)
		rows = append(rows, r)
		cells = append(cells, r.cells())
	}
	widths := s.widths(p, cells)
	lines := []string{s.title(k, begin, end)}
	if s.titles(k) > 1 {
		names := make([]string, len(p.columns))
		for i := range p.columns {
			names[i] = p.columns[i].name
		}
		lines = append(lines, s.ink.as(moodQuiet, s.line(names, widths)))
	}
	for i, r := range rows {
		lines = append(lines, s.ink.as(r.mood, s.line(cells[i], widths)))
	}
	return lines
}

// title names a pane, which rows of it are in sight, and whether keys move it.
func (s *fullScreen) title(k paneKind, begin, end int) string {
	mark := "─"
	if k == s.focus {
		mark = "▶"
	}
	text := fmt.Sprintf("%s %s %d ", mark, s.board.panes[k].name, s.count(k))
	if n := s.count(k); end-begin < n {
		text = fmt.Sprintf("%s %s %d-%d of %d ", mark, s.board.panes[k].name, begin+1, end, n)
	}
	text = s.fit(text + strings.Repeat("─", max(0, s.width-ansi.StringWidth(text))))
	if k == s.focus {
		return s.ink.as(moodTitle, text)
	}
	return s.ink.as(moodQuiet, text)
}

// widths are those of a pane's columns: what the rows in sight need, up to what
// the column may have. On a narrow screen the first column gives way to the last.
func (s *fullScreen) widths(p *pane, cells [][]string) []int {
	widths := make([]int, len(p.columns))
	total := 0
	for i := range len(p.columns) - 1 {
		widths[i] = ansi.StringWidth(p.columns[i].name)
		for _, row := range cells {
			if i < len(row) && len(row) > 1 {
				widths[i] = max(widths[i], min(ansi.StringWidth(row[i]), p.columns[i].width))
			}
		}
		total += widths[i] + 2
	}
	const least, last = 16, 24
	if short := total + last - s.width; short > 0 {
		widths[0] -= min(short, max(0, widths[0]-least))
	}
	return widths
}

// line puts cells into columns. A row of one cell has the line for itself.
func (s *fullScreen) line(cells []string, widths []int) string {
	if len(cells) == 1 {
		return s.fit(cells[0])
	}
	var b strings.Builder
	for i, cell := range cells {
		if i == len(widths)-1 {
			b.WriteString(clean(cell))
			break
		}
		text := ansi.Truncate(clean(cell), widths[i], "…")
		b.WriteString(text)
		b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(text)+2))
	}
	return ansi.Truncate(strings.TrimRight(b.String(), " "), s.width, "…")
}

// clean is a text without what would move the cursor or colour the screen:
// reasons may quote what programs printed.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
