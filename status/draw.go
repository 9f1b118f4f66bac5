package status

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"
)

// style is how a mood looks.
func (s *fullScreen) style(m mood) lipgloss.Style {
	style := lipgloss.NewStyle()
	if !s.color {
		return style
	}
	switch m {
	case moodPlain:
	case moodBad:
		return style.Foreground(lipgloss.Red)
	case moodWaiting:
		return style.Foreground(lipgloss.Yellow)
	case moodGood:
		return style.Foreground(lipgloss.Green)
	case moodQuiet:
		return style.Faint(true)
	case moodTitle:
		return style.Bold(true)
	}
	return style
}

// View draws the screen.
func (s *fullScreen) View() tea.View {
	v := tea.NewView(s.draw())
	v.AltScreen = true
	v.WindowTitle = "fray status"
	if v.Cursor = s.filter.Cursor(); v.Cursor != nil {
		v.Cursor.Y = s.height - 1
	}
	return v
}

// draw is the whole screen, a line for each of its rows.
func (s *fullScreen) draw() string {
	lines := s.body()
	lines = lines[:min(len(lines), max(0, s.height-1))]
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, s.footer())
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	return strings.Join(lines, "\n")
}

// body is all but the footer.
func (s *fullScreen) body() []string {
	if s.showsHelp {
		return strings.Split("fray status --watch\n\n"+s.help.FullHelpView(s.keys.FullHelp())+"\n\n"+helpText, "\n")
	}
	if s.board == nil {
		return []string{"Reading the stack …"}
	}
	if s.detail != nil {
		return s.drawDetail()
	}
	s.settle()
	var lines []string
	for _, h := range s.board.head {
		lines = append(lines, s.style(h.mood).Render(clean(h.text)))
	}
	for k := range paneCount {
		lines = append(lines, s.drawPane(k)...)
	}
	return lines
}

const helpText = `Jobs are in the order in which they need attention: what failed, what waits,
what is coming up, what runs, what has ended. Jobs that a job launched are
below it. Enter opens the job of the selected row: its attempts with their causes,
what it waits for, and what it writes; or what is in the selected group. The stack is read again every second. Leaving stops nothing that runs.

Press any key to go back.`

func (s *fullScreen) footer() string {
	switch {
	case s.showsHelp:
		return ""
	case s.filter.Focused():
		return s.filter.View() + " Enter keeps it, Esc drops it"
	case s.stale != "":
		return s.style(moodBad).Render(clean("not up to date: " + s.stale))
	case s.detail != nil:
		return s.style(moodQuiet).Render(s.help.ShortHelpView(s.keys.detailHelp()))
	case s.filter.Value() != "":
		return s.style(moodWaiting).Render(fmt.Sprintf("only %q; Esc shows all", s.filter.Value()))
	case len(s.groups.opened) > 0:
		return s.style(moodWaiting).Render("only " + s.groups.names() + "; Esc shows all")
	}
	return s.style(moodQuiet).Render(s.help.ShortHelpView(s.keys.ShortHelp()))
}

// drawPane is a pane's title, the names of its columns, and the rows in sight.
func (s *fullScreen) drawPane(k paneKind) []string {
	if s.room[k] == 0 {
		return nil
	}
	begin, end := s.offset[k], min(s.offset[k]+s.room[k], s.count(k))
	lines := strings.Split(s.table(k, begin, end), "\n")
	return append([]string{s.title(k, begin, end)}, lines[:min(len(lines), s.room[k]+s.titles(k)-1)]...)
}

// title names a pane, which rows of it are in sight, and whether keys move it.
func (s *fullScreen) title(k paneKind, begin, end int) string {
	mark, m := "─", moodQuiet
	if k == s.focus {
		mark, m = "▶", moodTitle
	}
	rows := fmt.Sprint(s.entries(k, 0, s.count(k)))
	if end-begin < s.count(k) {
		before := s.entries(k, 0, begin)
		rows = fmt.Sprintf("%d-%d of %s", before+1, before+s.entries(k, begin, end), rows)
	}
	text := fmt.Sprintf("%s %s %s ", mark, s.board.panes[k].name, rows)
	return s.style(m).Render(text + strings.Repeat("─", max(0, s.width-lipgloss.Width(text))))
}

// What stands before rows, which is all that marks the selected one without colours.
const (
	selected   = "› "
	unselected = "  "
)

// entries is how many of the rows are no titles of others.
func (s *fullScreen) entries(k paneKind, begin, end int) int {
	n := 0
	for i := begin; i < end; i++ {
		if !s.row(k, i).title {
			n++
		}
	}
	return n
}

// table is the rows of a pane from begin to end. Columns are as wide as the rows in sight
// need, up to what each may have. On a narrow screen the widest give way, but the first
// keeps enough to tell its rows apart.
func (s *fullScreen) table(k paneKind, begin, end int) string {
	columns := s.board.panes[k].columns
	t := table.New().Wrap(false).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderHeader(false)
	if s.titles(k) > 1 {
		names := make([]string, len(columns))
		for i := range columns {
			names[i] = columns[i].name
		}
		names[0] = unselected + names[0]
		t.Headers(names...)
	}
	moods, first := make([]mood, 0, end-begin), 0
	for i := begin; i < end; i++ {
		r := s.row(k, i)
		cells := make([]string, len(columns))
		for i, cell := range r.cells() {
			if cells[i] = clean(cell); columns[i].width > 0 {
				cells[i] = ansi.Truncate(cells[i], columns[i].width, "…")
			}
		}
		if k == s.focus && i == s.selected[k] {
			cells[0] = selected + cells[0]
		} else {
			cells[0] = unselected + cells[0]
		}
		moods, first = append(moods, r.mood), max(first, lipgloss.Width(cells[0]))
		t.Row(cells...)
	}
	style := func(row, col int) lipgloss.Style {
		m := moodQuiet
		if row != table.HeaderRow {
			m = moods[row]
		}
		gap := 2
		if col == len(columns)-1 {
			gap = 0
		}
		style := s.style(m).PaddingRight(gap)
		if s.color && row != table.HeaderRow && k == s.focus && begin+row == s.selected[k] {
			return style.Reverse(true)
		}
		return style
	}
	if text := t.StyleFunc(style).String(); lipgloss.Width(text) <= s.width {
		return text
	}
	const least = 16
	first = min(first, max(least, s.width/3)) + 2
	return t.Width(s.width).StyleFunc(func(row, col int) lipgloss.Style {
		if col == 0 {
			return style(row, col).Width(first)
		}
		return style(row, col)
	}).String()
}
