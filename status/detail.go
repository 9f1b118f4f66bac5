package status

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/terminal"
)

// Logs writes what a job's tasks wrote, and goes on until the job or ctx ends.
type Logs func(ctx context.Context, job schema.Address, to io.Writer) error

// detail is the view of one job: its attempts and waits, and below what it writes.
type detail struct {
	job   schema.Address
	log   *liveLog
	panes [detailPanes]detailPane
	focus detailKind
}

// detailKind is a closed set.
type detailKind int

// The panes of a job, in the order in which they are shown.
const (
	detailHistory detailKind = iota
	detailLog

	detailPanes
)

// detailPane is lines of which some are in sight.
type detailPane struct {
	lines []string
	back  int // how many lines from the end the last one in sight is; 0: the end is followed
	room  int // lines in sight
}

// scroll moves what is in sight up by so many lines, or down.
func (p *detailPane) scroll(up int) {
	p.back = max(0, min(p.back+up, len(p.lines)-p.room))
}

// fill sets the lines. A reader who has scrolled up stays there.
func (p *detailPane) fill(lines []string) {
	if p.back > 0 {
		p.back = max(0, p.back+len(lines)-len(p.lines))
	}
	p.lines = lines
}

func (p *detailPane) visible() (lines []string, first int) {
	end := len(p.lines) - p.back
	first = max(0, end-p.room)
	return p.lines[first:end], first
}

// history is what is known of a job: the causes of its attempts, and why it waits.
func (v *View) history(job schema.Address) []string {
	if v.Doc.Jobs[job] == nil {
		return []string{job.String() + " is no longer there."}
	}
	var text bytes.Buffer
	v.attempts(&terminal.Terminal{Stdout: &text}, job)
	lines := strings.Split(strings.Trim(text.String(), "\n"), "\n")
	if v.Doc.Jobs[job].Reason != "" && len(v.pending[job]) == 0 {
		lines = append(lines, "  "+v.Doc.Jobs[job].Reason)
	}
	return lines
}

// headline is a job's status in a line.
func (v *View) headline(job schema.Address) headLine {
	j := v.Doc.Jobs[job]
	if j == nil {
		return headLine{moodQuiet, job.String()}
	}
	text := fmt.Sprintf("%s  %s  %s tasks", job, j.Status, tasksOf(j))
	if note := v.note(job, j); note != "" {
		text += "  " + note
	}
	m := jobMood(j)
	if m == moodPlain {
		m = moodTitle
	}
	return headLine{m, text}
}

// keptLines is how many of a job's last lines can be scrolled back to.
const keptLines = 5000

// liveLog takes in what a job writes. It is safe for concurrent use.
type liveLog struct {
	end context.CancelFunc

	mu      sync.Mutex
	lines   []string
	partial []byte
	state   string // of the log, for people
	news    chan struct{}
}

// logNews is that there is more of a log.
type logNews struct{ log *liveLog }

// openLog begins to follow a job's log.
func openLog(ctx context.Context, logs Logs, job schema.Address) *liveLog {
	ctx, cancel := context.WithCancel(ctx)
	l := &liveLog{end: cancel, state: "followed", news: make(chan struct{}, 1)}
	go func() {
		err := logs(ctx, job, l)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.partial) > 0 {
			l.add(string(l.partial))
		}
		switch {
		case err != nil && ctx.Err() == nil:
			l.state = err.Error()
		default:
			l.state = "ended"
		}
		l.tell()
	}()
	return l
}

// Write takes in text.
func (l *liveLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, ended := bytes.Cut(l.partial, []byte("\n"))
		if !ended {
			break
		}
		l.add(string(line))
		l.partial = rest
	}
	l.partial = bytes.Clone(l.partial)
	l.tell()
	return len(p), nil
}

func (l *liveLog) add(line string) {
	if len(l.lines) >= 2*keptLines {
		l.lines = append([]string{}, l.lines[len(l.lines)-keptLines:]...)
	}
	l.lines = append(l.lines, line)
}

func (l *liveLog) tell() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// read is the last lines and how the log stands.
func (l *liveLog) read() (lines []string, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := max(0, len(l.lines)-keptLines)
	return l.lines[from:len(l.lines):len(l.lines)], l.state
}

// await waits for more.
func (l *liveLog) await() tea.Msg {
	<-l.news
	return logNews{l}
}

// open shows the job of the selected row.
func (s *fullScreen) open() tea.Cmd {
	if s.board == nil || s.count(s.focus) == 0 {
		return nil
	}
	if terms := s.row(s.focus, s.selected[s.focus]).group; terms != nil {
		s.openGroup(terms)
		return nil
	}
	job := s.row(s.focus, s.selected[s.focus]).job
	if job.Kind == "" || s.board.view.Doc.Jobs[job] == nil {
		return nil
	}
	s.detail = &detail{job: job, focus: detailLog}
	s.describe()
	if s.logs == nil {
		return nil
	}
	s.detail.log = openLog(s.ctx, s.logs, job)
	return s.detail.log.await
}

// describe brings the view of the job up to date.
func (s *fullScreen) describe() {
	if s.detail == nil {
		return
	}
	d := s.detail
	d.panes[detailHistory].fill(s.board.view.history(d.job))
	if d.log != nil {
		lines, _ := d.log.read()
		d.panes[detailLog].fill(lines)
	}
}

// news takes in more of a log.
func (s *fullScreen) news(n logNews) tea.Cmd {
	if s.detail == nil || s.detail.log != n.log {
		return nil // it was closed
	}
	s.describe()
	return n.log.await
}

// close goes back to the stack.
func (s *fullScreen) close() {
	if s.detail == nil {
		return
	}
	if l := s.detail.log; l != nil {
		l.end()
		l.tell()
	}
	s.detail = nil
}
