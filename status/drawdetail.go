package status

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
)

// drawDetail is the view of a job: a third of the screen for its history at most, unless
// that is in focus, and the rest for its log.
func (s *fullScreen) drawDetail() []string {
	d := s.detail
	head := s.board.view.headline(d.job)
	lines := []string{s.style(s.board.head[0].mood).Render(clean(s.board.head[0].text)), s.style(head.mood).Render(clean(head.text))}
	left := s.height - 1 - len(lines) - int(detailPanes)
	most := left / 3
	if d.focus == detailHistory {
		most = left - min(left/3, max(1, len(d.panes[detailLog].lines)))
	}
	d.panes[detailHistory].room = max(1, min(len(d.panes[detailHistory].lines), most))
	d.panes[detailLog].room = max(1, left-d.panes[detailHistory].room)
	for k := range detailPanes {
		p := &d.panes[k]
		p.scroll(0)
		visible, first := p.visible()
		lines = append(lines, s.detailTitle(k, first, len(visible)))
		for _, line := range visible {
			lines = append(lines, s.style(detailMood(k, line)).Render(clean(line)))
		}
	}
	return lines
}

func (s *fullScreen) detailTitle(k detailKind, first, visible int) string {
	d := s.detail
	mark, m := "─", moodQuiet
	if k == d.focus {
		mark, m = "▶", moodTitle
	}
	name := "History"
	if k == detailLog {
		name = "Log"
		switch state := d.logState(); {
		case len(d.panes[k].lines) == 0 && state == "ended":
			name += ": nothing was written"
		default:
			name += ", " + state
		}
	}
	if n := len(d.panes[k].lines); visible < n {
		name += fmt.Sprintf(" %d-%d of %d", first+1, first+visible, n)
	}
	text := clean(mark + " " + name + " ")
	return s.style(m).Render(text + strings.Repeat("─", max(0, s.width-lipgloss.Width(text))))
}

func (d *detail) logState() string {
	if d.log == nil {
		return "not read"
	}
	_, state := d.log.read()
	return state
}

// detailMood is the style of a line of the history: its shape is that of status with an
// address.
func detailMood(k detailKind, line string) mood {
	switch {
	case k != detailHistory:
		return moodPlain
	case strings.HasPrefix(line, "  waits: "):
		return moodWaiting
	case strings.HasPrefix(line, "  attempt "), !strings.HasPrefix(line, " "):
		return moodTitle
	case strings.HasPrefix(line, "      | "):
		return moodQuiet
	}
	return moodPlain
}
