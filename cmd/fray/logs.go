package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// followPace is how often logs -f looks for more, and statePace how often for
// new tasks where all output comes from their hosts by itself.
const (
	followPace = 200 * time.Millisecond
	statePace  = time.Second
)

func logsCommand(a *app) *cobra.Command {
	var config configFlags
	var q logQuery
	var dir string
	cmd := &cobra.Command{
		Use:   "logs [ADDR...]",
		Short: "Print what jobs' tasks write",
		Long: `Print what the tasks of jobs wrote, each line with its task where there are
several. ADDR names a job, an instance of it, a group or a module; without one it is
the whole stack. Without --attempt, the last attempt. With -f what is written comes
from the tasks' hosts at once, and through the store where they cannot be reached.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if q.since < 0 {
				return fmt.Errorf("--since=%s: want a time that is over, such as 10m", q.since)
			}
			l, err := a.locate(ctx, []string{dir}, config)
			if err != nil {
				return err
			}
			if q.addrs, err = l.addresses("logs", args); err != nil {
				return err
			}
			return a.logs(ctx, l, q)
		},
	}
	config.register(cmd)
	cmd.Flags().BoolVarP(&q.follow, "follow", "f", false, "go on until the jobs end")
	cmd.Flags().IntVar(&q.task, "task", -1, "only task `N`")
	cmd.Flags().IntVar(&q.attempt, "attempt", 0, "attempt `N` instead of the last one")
	cmd.Flags().IntVarP(&q.tail, "tail", "n", -1, "only the last `N` lines of each task")
	cmd.Flags().DurationVar(&q.since, "since", 0, "only what was written in the last `TIME`, such as 10m, and what is kept in one piece with it: up to 256 KiB")
	cmd.Flags().BoolVar(&q.bare, "no-prefix", false, "print lines without the name of their task")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "look at the stack of `DIR` (or of one file)")
	return cmd
}

// logQuery is whose output is asked for, and how much of it.
type logQuery struct {
	addrs         []schema.Address // none: the whole stack
	task, attempt int
	tail          int
	since         time.Duration
	follow, bare  bool
}

func (q *logQuery) wants(job schema.Address) bool {
	for _, addr := range q.addrs {
		if addr.Contains(job) {
			return true
		}
	}
	return len(q.addrs) == 0
}

// name is what the query is of, for people.
func (q *logQuery) name() string {
	if len(q.addrs) == 1 {
		return q.addrs[0].String()
	}
	return "what was asked for"
}

// status is the command that says more.
func (q *logQuery) status() string {
	if len(q.addrs) == 1 {
		return "fray status " + shellWord(q.addrs[0].String())
	}
	return "fray status"
}

func (a *app) logs(ctx context.Context, l *loaded, q logQuery) error {
	p := newLogPrinter(a, l.stack.store, q)
	p.live = newLiveLogs(ctx, l, p)
	defer p.live.close()
	for {
		v, err := l.look(ctx)
		if err != nil {
			return stopped(ctx, err)
		}
		ended, err := q.open(v.doc, p)
		if err != nil {
			return err
		}
		over := !q.follow || ended || ctx.Err() != nil
		if over {
			p.live.finish()
		}
		if err := p.drain(ctx); err != nil {
			return stopped(ctx, err)
		}
		if over {
			p.flush()
			if text := q.silence(v.doc, p.sorted()); text != "" && !p.printed() {
				fmt.Fprintf(a.stderr, "No output: %s.\n", text)
			}
			return nil
		}
		p.live.listen(p.sorted())
		select {
		case <-ctx.Done():
		case <-time.After(p.pace()):
		}
		if l.doc, err = l.stack.load(ctx); err != nil {
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
func (q *logQuery) open(doc *state.Document, p *logPrinter) (bool, error) {
	ended, matched, tasks := true, 0, 0
	for _, addr := range sortedJobs(doc) {
		if !q.wants(addr) {
			continue
		}
		matched++
		j := doc.Jobs[addr]
		ended = ended && j.Status.Ended()
		for i := range j.Attempts {
			t := &j.Attempts[i]
			if t.Number == q.attempt || q.attempt == 0 && (t.Number == j.Attempt || q.follow && p.has(addr, t.Number)) {
				tasks += len(t.Tasks)
				q.openAttempt(addr, j, t, p)
			}
		}
	}
	p.name(len(p.streams) > 1 || q.task < 0 && tasks > 1)
	switch {
	case q.attempt > 0 && tasks == 0:
		return ended, fmt.Errorf("%s has no attempt %d on record; %s lists them", q.name(), q.attempt, q.status())
	case tasks == 0 && !q.follow:
		return ended, fmt.Errorf("%s has not started yet; %s says why", q.name(), q.status())
	case tasks > 0 && len(p.streams) == 0:
		return ended, fmt.Errorf("%s has no task %d; its tasks are 0 to %d", q.name(), q.task, tasks/max(matched, 1)-1)
	}
	return ended, nil
}

func (q *logQuery) openAttempt(addr schema.Address, j *state.Job, t *state.Attempt, p *logPrinter) {
	for n := range t.Tasks {
		if q.task >= 0 && n != q.task {
			continue
		}
		s := p.stream(logKey{job: addr, attempt: t.Number, task: n})
		s.id, s.place, s.running = j.ID, &t.Tasks[n], t.Outcome == ""
	}
}
