package status

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// fullScreen is the full-screen view of a stack: what was last seen of it, and the
// position in it. Each observation makes another board; drawing takes the
// rows that fit.
type fullScreen struct {
	look func() (*board, error)
	pace time.Duration // between two looks
	ink  ink

	board *board
	fatal error  // the first look failed
	stale string // why the last one did, "" if it did not

	width, height int
	focus         paneKind
	offset        [paneCount]int
	room          [paneCount]int   // rows that were drawn last
	found         [paneCount][]int // rows that the filter leaves, nil: all
	filter        string
	typing, help  bool
}

var _ tea.Model = (*fullScreen)(nil)

func newFullScreen(look func() (*board, error)) *fullScreen {
	return &fullScreen{look: look, pace: lookPace, width: 80, height: 24}
}

// looked is what a look came to; due says that the next one may begin.
type (
	looked struct {
		board *board
		err   error
		began time.Time
	}
	due struct{}
)

// Init begins the first look.
func (s *fullScreen) Init() tea.Cmd { return s.lookNow }

func (s *fullScreen) lookNow() tea.Msg {
	began := time.Now()
	b, err := s.look()
	return looked{b, err, began}
}

// Update takes in a key, a look or the terminal's size.
func (s *fullScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case looked:
		return s, s.saw(msg)
	case due:
		return s, s.lookNow
	case tea.KeyPressMsg:
		return s, s.key(msg)
	case tea.PasteMsg:
		if s.typing {
			s.search(s.filter + clean(msg.Content))
		}
	}
	return s, nil
}

func (s *fullScreen) saw(l looked) tea.Cmd {
	switch {
	case l.err == nil:
		s.board, s.stale = l.board, ""
		s.search(s.filter)
		s.settle()
	case s.board == nil:
		s.fatal = l.err
		return tea.Quit
	default:
		s.stale = l.err.Error()
	}
	return tea.Tick(max(s.pace-time.Since(l.began), s.pace/10), func(time.Time) tea.Msg { return due{} })
}

func (s *fullScreen) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case s.typing:
		s.typed(name, msg.Text)
		return nil
	case s.help:
		s.help = false
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "?", "h":
		s.help = true
	case "/":
		s.typing = true
	case "esc":
		s.search("")
	case "tab", "right", "l":
		s.turn(1)
	case "shift+tab", "left":
		s.turn(-1)
	default:
		s.scroll(name)
	}
	return nil
}

// typed takes in a key of the filter.
func (s *fullScreen) typed(name, text string) {
	switch name {
	case "enter", "tab":
		s.typing = false
	case "esc":
		s.typing = false
		s.search("")
	case "backspace":
		if letters := []rune(s.filter); len(letters) > 0 {
			s.search(string(letters[:len(letters)-1]))
		}
	case "ctrl+u":
		s.search("")
	default:
		s.search(s.filter + clean(text))
	}
}

func (s *fullScreen) scroll(name string) {
	at, page := &s.offset[s.focus], max(1, s.room[s.focus])
	switch name {
	case "up", "k":
		*at--
	case "down", "j":
		*at++
	case "pgup", "b", "ctrl+b":
		*at -= page
	case "pgdown", "space", "ctrl+f":
		*at += page
	case "home", "g":
		*at = 0
	case "end", "G":
		*at = s.count(s.focus)
	}
	s.settle()
}

// turn moves the focus to the next pane that has anything, or the one before.
func (s *fullScreen) turn(by int) {
	for range int(paneCount) {
		s.focus = (s.focus + paneKind(by) + paneCount) % paneCount
		if s.count(s.focus) > 0 {
			return
		}
	}
}

// count is how many rows a pane has that the filter leaves.
func (s *fullScreen) count(k paneKind) int {
	switch {
	case s.board == nil:
		return 0
	case s.found[k] != nil:
		return len(s.found[k])
	}
	return len(s.board.panes[k].rows)
}

// row is the n-th of a pane that the filter leaves.
func (s *fullScreen) row(k paneKind, n int) row {
	if s.found[k] != nil {
		n = s.found[k][n]
	}
	return s.board.panes[k].rows[n]
}

// search keeps the rows that have a text somewhere; "" keeps all.
func (s *fullScreen) search(text string) {
	s.filter = text
	for k := range paneCount {
		s.found[k] = nil
		if text == "" || s.board == nil {
			continue
		}
		s.found[k] = []int{}
		for i, r := range s.board.panes[k].rows {
			has := func(cell string) bool { return strings.Contains(strings.ToLower(cell), strings.ToLower(text)) }
			if slices.ContainsFunc(r.cells(), has) {
				s.found[k] = append(s.found[k], i)
			}
		}
	}
	s.settle()
}

// settle keeps the offsets among the rows.
func (s *fullScreen) settle() {
	s.share()
	for k := range paneCount {
		s.offset[k] = max(0, min(s.offset[k], s.count(k)-s.room[k]))
	}
}

// share says how many rows each pane shows: the one in focus what it needs, as
// long as the others can show a few.
func (s *fullScreen) share() {
	s.room = [paneCount]int{}
	left := s.height - s.headHeight() - 1
	order := []paneKind{s.focus}
	for k := range paneCount {
		if k != s.focus && s.count(k) > 0 {
			order = append(order, k)
		}
	}
	few := max(1, left/3)
	for _, k := range order {
		if rows := min(left-s.titles(k), s.count(k), few); rows > 0 {
			s.room[k] = rows
			left -= rows + s.titles(k)
		}
		few = max(1, s.height/12)
	}
	for _, k := range order {
		if s.room[k] > 0 {
			more := min(left, s.count(k)-s.room[k])
			s.room[k] += more
			left -= more
		}
	}
}

// titles is how many lines a pane has above its rows. On a low screen only the
// one in focus names its columns.
func (s *fullScreen) titles(k paneKind) int {
	const low = 36
	if k != s.focus && s.height < low {
		return 1
	}
	return 2
}

func (s *fullScreen) headHeight() int {
	if s.board == nil {
		return 0
	}
	return len(s.board.head)
}
