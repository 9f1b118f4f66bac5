package status

import (
	"context"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/fray-ml/fray/schema"
)

// fullScreen is the full-screen view of a stack: what was last seen of it, and the
// position in it. Each observation makes another board; drawing takes the
// rows that fit.
//
// The panes are no bubbles tables: those take all rows as text at once, have one style for
// all rows, and move a selection instead of the rows.
type fullScreen struct {
	observe func() (*board, error)
	pace    time.Duration // between two observations
	color   bool

	ctx  context.Context // of logs that are followed
	logs Logs            // nil: a job is shown without

	board *board
	fatal error  // the first observation failed
	stale string // why the last one did, "" if it did not

	width, height int
	focus         paneKind
	selected      [paneCount]int // the row that Enter opens
	offset        [paneCount]int
	room          [paneCount]int   // rows that were drawn last
	found         [paneCount][]int // rows that the filter leaves, nil: all
	groups        grouping
	detail        *detail         // the job that is shown instead, nil if none is
	filter        textinput.Model // focused while it is typed
	keys          keyMap
	help          help.Model
	showsHelp     bool
}

var _ tea.Model = (*fullScreen)(nil)

func newFullScreen(observe func() (*board, error)) *fullScreen {
	s := &fullScreen{observe: observe, ctx: context.Background(), pace: observePace, width: 80, height: 24, keys: newKeyMap(), filter: textinput.New(), help: help.New()}
	s.filter.Prompt = "/"
	s.filter.SetStyles(textinput.Styles{})
	s.filter.SetVirtualCursor(false)
	s.help.Styles = help.Styles{}
	return s
}

// observation is the outcome of one; due: the next one may begin.
type (
	observation struct {
		board *board
		err   error
		began time.Time
	}
	due struct{}
)

// Init begins the first observation.
func (s *fullScreen) Init() tea.Cmd { return s.observeNow }

func (s *fullScreen) observeNow() tea.Msg {
	began := time.Now()
	b, err := s.observe()
	return observation{b, err, began}
}

// Update takes in a key, an observation or the terminal's size.
func (s *fullScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
		s.help.SetWidth(msg.Width)
		return s, nil
	case observation:
		return s, s.take(msg)
	case due:
		return s, s.observeNow
	case logNews:
		return s, s.news(msg)
	case tea.KeyPressMsg:
		return s, s.key(msg)
	}
	return s, s.typed(msg)
}

func (s *fullScreen) take(o observation) tea.Cmd {
	switch {
	case o.err == nil:
		was := s.selectedJob()
		s.show(o.board)
		s.stale = ""
		s.search()
		s.reselect(was)
		s.describe()
	case s.board == nil:
		s.fatal = o.err
		return tea.Quit
	default:
		s.stale = o.err.Error()
	}
	return tea.Tick(max(s.pace-time.Since(o.began), s.pace/10), func(time.Time) tea.Msg { return due{} })
}

// selectedJob is the job of the selected row of the jobs, zero if there is none.
func (s *fullScreen) selectedJob() schema.Address {
	if n := s.selected[paneJobs]; n < s.count(paneJobs) {
		return s.row(paneJobs, n).job
	}
	return schema.Address{}
}

// reselect keeps a job selected whose row has moved. The first row stays selected: who
// has not chosen looks at what is most urgent.
func (s *fullScreen) reselect(job schema.Address) {
	if s.selected[paneJobs] == 0 || job.Kind == "" {
		return
	}
	for n := range s.count(paneJobs) {
		if s.row(paneJobs, n).job == job {
			s.selected[paneJobs] = n
			s.settle()
			return
		}
	}
}

func (s *fullScreen) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case s.showsHelp: // then the filter is not typed
		s.showsHelp = false
	case s.detail != nil:
		return s.detailKey(msg)
	case s.filter.Focused() && (name == "enter" || name == "tab"):
		s.filter.Blur()
	case key.Matches(msg, s.keys.all):
		s.filter.Blur()
		s.filter.Reset()
		s.closeGroups()
		s.search()
	case s.filter.Focused():
		return s.typed(msg)
	case key.Matches(msg, s.keys.quit):
		return tea.Quit
	case key.Matches(msg, s.keys.help):
		s.showsHelp = true
	case key.Matches(msg, s.keys.filter):
		return s.filter.Focus()
	case key.Matches(msg, s.keys.open):
		return s.open()
	case key.Matches(msg, s.keys.group):
		s.regroup()
	case key.Matches(msg, s.keys.next):
		s.turn(1)
	case key.Matches(msg, s.keys.previous):
		s.turn(-1)
	default:
		s.scroll(msg)
	}
	return nil
}

// typed takes in what changes the filter, while that is typed.
func (s *fullScreen) typed(msg tea.Msg) tea.Cmd {
	var next tea.Cmd
	was := s.filter.Value()
	if s.filter, next = s.filter.Update(msg); s.filter.Value() != was {
		s.search()
	}
	return next
}

// detailKey takes in a key while a job is shown.
func (s *fullScreen) detailKey(msg tea.KeyPressMsg) tea.Cmd {
	p := &s.detail.panes[s.detail.focus]
	switch {
	case key.Matches(msg, s.keys.all), key.Matches(msg, s.keys.back):
		s.close()
	case key.Matches(msg, s.keys.quit):
		return tea.Quit
	case key.Matches(msg, s.keys.help):
		s.showsHelp = true
	case key.Matches(msg, s.keys.next), key.Matches(msg, s.keys.previous):
		s.detail.focus = (s.detail.focus + 1) % detailPanes
	case key.Matches(msg, s.keys.up):
		p.scroll(1)
	case key.Matches(msg, s.keys.down):
		p.scroll(-1)
	case key.Matches(msg, s.keys.pageUp):
		p.scroll(p.room)
	case key.Matches(msg, s.keys.pageDown):
		p.scroll(-p.room)
	case key.Matches(msg, s.keys.toFirst):
		p.scroll(len(p.lines))
	case key.Matches(msg, s.keys.toLast):
		p.scroll(-len(p.lines))
	}
	return nil
}

// scroll moves the selection, and the rows in sight with it.
func (s *fullScreen) scroll(msg tea.KeyPressMsg) {
	at, page := &s.selected[s.focus], max(1, s.room[s.focus])
	switch {
	case key.Matches(msg, s.keys.up):
		*at--
	case key.Matches(msg, s.keys.down):
		*at++
	case key.Matches(msg, s.keys.pageUp):
		*at -= page
		s.offset[s.focus] -= page
	case key.Matches(msg, s.keys.pageDown):
		*at += page
		s.offset[s.focus] += page
	case key.Matches(msg, s.keys.toFirst):
		*at = 0
	case key.Matches(msg, s.keys.toLast):
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

// search keeps the rows that have the filter's text somewhere; "" keeps all.
func (s *fullScreen) search() {
	text := strings.ToLower(s.filter.Value())
	has := func(cell string) bool { return strings.Contains(strings.ToLower(cell), text) }
	for k := range paneCount {
		s.found[k] = nil
		if text == "" || s.board == nil {
			continue
		}
		s.found[k] = []int{}
		for i, r := range s.board.panes[k].rows {
			if slices.ContainsFunc(r.cells(), has) {
				s.found[k] = append(s.found[k], i)
			}
		}
	}
	s.settle()
}

// settle keeps the selections and the offsets among the rows, and the selected row in sight.
func (s *fullScreen) settle() {
	s.share()
	for k := range paneCount {
		s.selected[k] = max(0, min(s.selected[k], s.count(k)-1))
		s.offset[k] = min(s.offset[k], s.selected[k])
		s.offset[k] = max(s.offset[k], s.selected[k]-s.room[k]+1)
		s.offset[k] = max(0, min(s.offset[k], s.count(k)-s.room[k]))
	}
}

// share sets how many rows each pane shows: the one in focus what it needs, as
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
	const low = 24
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
