package follow

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/status"
	"github.com/fray-ml/fray/terminal"
)

// followPace is how often logs -f reads more, and statePace how often it reads
// new tasks where all output comes from their hosts by itself.
const (
	followPace = 200 * time.Millisecond
	statePace  = time.Second
)

// Query is whose output is asked for, and how much of it.
type Query struct {
	Addrs         []schema.Address // none: the whole stack
	Actor         string           // only what actors of this name write
	Task, Attempt int
	Tail          int
	Since         time.Duration
	Follow, Bare  bool
	outputs       []actors.Output // of the actors
	Timestamps    bool            // each line has the time at which it was written
	// Plot are metrics whose curves are drawn instead of the lines. Those of all attempts are one curve.
	Plot []string
	all  bool // attempts
}

func (q *Query) wants(job schema.Address) bool {
	for _, addr := range q.Addrs {
		if addr.Contains(job) {
			return true
		}
	}
	return len(q.Addrs) == 0
}

// name is what the query is of, for people.
func (q *Query) name() string {
	if len(q.Addrs) == 1 {
		return q.Addrs[0].String()
	}
	return "what was asked for"
}

// status is the command that shows more.
func (q *Query) status() string {
	if len(q.Addrs) == 1 {
		return "fray status " + terminal.ShellQuote(q.Addrs[0].String())
	}
	return "fray status"
}

// Print prints the logs that a query asks for.
func Print(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, q Query) error {
	if len(q.Plot) > 0 {
		return plot(ctx, a, l, q)
	}
	p := newLogPrinter(a, l.Stack.Store, q)
	p.live = newLiveLogs(ctx, l, p)
	defer p.live.close()
	for {
		v, err := status.ReadJobs(ctx, l, q.Addrs)
		if err != nil {
			return stopped(ctx, err)
		}
		doc, err := q.withKeptLogs(ctx, l.Stack.Store, v.Doc)
		if err != nil {
			return stopped(ctx, err)
		}
		if err := q.locate(ctx, l.Stack.Store, doc); err != nil {
			return stopped(ctx, err)
		}
		ended, err := q.open(doc, p)
		if err != nil {
			return err
		}
		over := !q.Follow || ended || ctx.Err() != nil
		if over {
			p.live.finish()
		}
		if err := p.drain(ctx, over); err != nil {
			return stopped(ctx, err)
		}
		if over {
			if text := q.silence(doc, p.sorted()); text != "" && !p.printed() {
				fmt.Fprintf(a.Stderr, "No output: %s.\n", text)
			}
			return nil
		}
		p.live.listen(p.sorted())
		p.rest(ctx, p.pace())
		if l.Document, err = l.Stack.Load(ctx); err != nil {
			return stopped(ctx, err)
		}
	}
}

// stopped is nil where the reader has had enough.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// open adds the streams that the query names and reports whether all their jobs
// have ended.
func (q *Query) open(doc *state.Document, p *logPrinter) (bool, error) {
	ended, matched, tasks := true, 0, 0
	for _, addr := range stack.SortedJobs(doc) {
		if !q.wants(addr) {
			continue
		}
		j := doc.Jobs[addr]
		if !q.hosts(j) {
			continue
		}
		matched++
		ended = ended && j.Status.Ended()
		for i := range j.Attempts {
			t := &j.Attempts[i]
			if t.Number == q.Attempt || q.Attempt == 0 && (q.all || t.Number == j.Attempt || q.Follow && p.has(addr, t.Number)) {
				tasks += len(t.Tasks)
				q.openAttempt(addr, j, t, p)
			}
		}
	}
	p.name(len(p.streams) > 1 || q.Actor == "" && q.Task < 0 && tasks > 1)
	switch {
	case matched == 0 && q.Actor != "":
		return ended, q.unknownActor(doc)
	case q.Attempt > 0 && tasks == 0:
		return ended, fmt.Errorf("%s has no attempt %d on record; %s lists them", q.name(), q.Attempt, q.status())
	case tasks == 0 && !q.Follow:
		return ended, fmt.Errorf("%s has not started yet; see %s for the reason", q.name(), q.status())
	case tasks > 0 && len(p.streams) == 0:
		return ended, fmt.Errorf("%s has no task %d; its tasks are 0 to %d", q.name(), q.Task, tasks/max(matched, 1)-1)
	}
	return ended, nil
}

func (q *Query) openAttempt(addr schema.Address, j *state.Job, t *state.Attempt, p *logPrinter) {
	for n := range t.Tasks {
		at, there := q.output(j, t.Number, n)
		if q.Task >= 0 && n != q.Task || !there {
			continue
		}
		s := p.stream(logKey{job: addr, attempt: t.Number, task: n})
		p.keepOnly(s, at.Prefix)
		s.id, s.place, s.running = j.ID, &t.Tasks[n], t.Outcome == ""
	}
}

// tailLines is how many lines of each task the view of a job begins with.
const tailLines = 1000

// Logs follows jobs for the view of a stack: their last lines, and what they write then.
func Logs(l *configuration.Loaded) status.Logs {
	return func(ctx context.Context, job schema.Address, to io.Writer) error {
		own := *l // it is brought up to date here, and by the view
		a := &terminal.Terminal{Stdout: to, Stderr: to}
		return Print(ctx, a, &own, Query{Addrs: []schema.Address{job}, Task: -1, Tail: tailLines, Follow: true, Timestamps: true})
	}
}
