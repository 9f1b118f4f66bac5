package follow

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/curves"
	"github.com/fray-ml/fray/terminal"
)

// NoMetricError is that the lines of a log have no metric of a name.
type NoMetricError struct {
	Name  string
	Known []string // the metrics that they have
}

func (e *NoMetricError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no line has the metric %q, or any other; curves are drawn of lines such as \"step 10  loss 0.5\"", e.Name)
	}
	return fmt.Sprintf("no line has the metric %q; want one of %s", e.Name, strings.Join(e.Known, ", "))
}

// plotter draws curves of the lines that are written to it.
type plotter struct {
	out    io.Writer
	names  []string // of the metrics
	size   curves.Size
	redraw bool // on a terminal, in place

	mu      sync.Mutex
	set     curves.Set
	partial []byte // a line whose end has not come yet
	fresh   bool   // a metric came since it was drawn
	drawn   int    // lines that are on the terminal
}

// mostRows is how many lines the curve of one metric has at most, without those of its title and its axis.
const (
	mostRows  = 12
	otherRows = 4
)

// redrawPace is how often curves are drawn again while their log is followed.
const redrawPace = 500 * time.Millisecond

// plot draws the curves of what Print would print, of the first task of a job unless another one is asked for.
func plot(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, q Query) error {
	p := &plotter{
		out: a.Stdout, names: q.Plot, redraw: q.Follow && a.Color(a.Stdout),
		// What scrolls out of a terminal could not be drawn over.
		size: curves.Size{Width: a.Width(a.Stdout), Height: min(mostRows, (a.Height(a.Stdout)-1)/len(q.Plot)-otherRows)},
	}
	q.Plot, q.Bare, q.Timestamps, q.all, q.Task = nil, true, false, true, max(q.Task, 0)
	lines := *a
	lines.Stdout = p
	done, drawing := make(chan struct{}), sync.WaitGroup{}
	if p.redraw {
		drawing.Go(func() { p.follow(done) })
	}
	err := Print(ctx, &lines, l, q)
	close(done)
	drawing.Wait()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.set.Names()
	for _, name := range p.names {
		if !slices.Contains(known, name) {
			return &NoMetricError{Name: name, Known: known}
		}
	}
	p.draw()
	return nil
}

// Write takes lines of a log.
func (p *plotter) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := append(p.partial, data...)
	for {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			break
		}
		p.fresh = p.set.Add(string(rest[:n])) || p.fresh
		rest = rest[n:]
	}
	p.partial = bytes.Clone(rest)
	return len(data), nil
}

// follow draws until done is closed.
func (p *plotter) follow(done <-chan struct{}) {
	pace := time.NewTicker(redrawPace)
	defer pace.Stop()
	for {
		select {
		case <-done:
			return
		case <-pace.C:
			p.mu.Lock()
			if p.fresh {
				p.draw()
			}
			p.mu.Unlock()
		}
	}
}

// draw draws the curves, over those that are there. What has no value yet is noted as such.
func (p *plotter) draw() {
	var text strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\x1b[J", p.drawn)
	}
	before := text.Len()
	for i, name := range p.names {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(curves.Chart(name, p.set.Points(name), p.size))
	}
	if p.redraw {
		p.drawn = strings.Count(text.String()[before:], "\n")
	}
	p.fresh = false
	_, _ = io.WriteString(p.out, text.String())
}
