package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// followPace is how often logs -f looks for more.
const followPace = 200 * time.Millisecond

func logsCommand(a *app) *cobra.Command {
	var config configFlags
	var q logQuery
	var dir string
	cmd := &cobra.Command{
		Use:   "logs ADDR",
		Short: "Print what a job's tasks write",
		Long: `Print what the tasks of a job wrote, each line with its task where there are
several. ADDR may name several instances. Without --attempt, the last attempt.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			l, err := a.locate(ctx, []string{dir}, config)
			if err != nil {
				return err
			}
			addrs, err := l.addresses("logs", args)
			if err != nil {
				return err
			}
			q.addr = addrs[0]
			return a.logs(ctx, l, q)
		},
	}
	config.register(cmd)
	cmd.Flags().BoolVarP(&q.follow, "follow", "f", false, "go on until the job ends")
	cmd.Flags().IntVar(&q.task, "task", -1, "only task `N`")
	cmd.Flags().IntVar(&q.attempt, "attempt", 0, "attempt `N` instead of the last one")
	cmd.Flags().IntVarP(&q.tail, "tail", "n", -1, "only the last `N` lines of each task")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "look at the stack of `DIR` (or of one file)")
	return cmd
}

type logQuery struct {
	addr          schema.Address
	task, attempt int
	tail          int
	follow        bool
}

// stream is one task's output and how far it has been printed.
type stream struct {
	job     schema.Address
	id      string // of the job: its logs stay where they are when it is moved
	attempt int
	task    int
	prefix  string
	next    int64
	partial []byte // a line whose end has not come yet
	trimmed bool   // --tail was applied
}

func (a *app) logs(ctx context.Context, l *loaded, q logQuery) error {
	streams := map[string]*stream{}
	for {
		v, err := l.look(ctx)
		if err != nil {
			return stopped(ctx, err)
		}
		ended, err := q.open(v.doc, streams)
		if err != nil {
			return err
		}
		for _, key := range sortedKeys(streams) {
			if err := a.drain(ctx, l.stack.store, streams[key], q.tail); err != nil {
				return stopped(ctx, err)
			}
		}
		if !q.follow || ended || ctx.Err() != nil {
			for _, key := range sortedKeys(streams) {
				a.flush(streams[key])
			}
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPace):
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
func (q *logQuery) open(doc *state.Document, streams map[string]*stream) (bool, error) {
	ended, matched, tasks := true, 0, 0
	for _, addr := range sortedJobs(doc) {
		if !q.addr.Contains(addr) {
			continue
		}
		matched++
		j := doc.Jobs[addr]
		ended = ended && j.Status.Ended()
		for i := range j.Attempts {
			t := &j.Attempts[i]
			wanted := t.Number == q.attempt || q.attempt == 0 && (t.Number == j.Attempt || q.follow && streams[streamKey(addr, t.Number, 0)] != nil)
			if !wanted {
				continue
			}
			for n := range t.Tasks {
				tasks++
				if q.task >= 0 && n != q.task {
					continue
				}
				key := streamKey(addr, t.Number, n)
				if streams[key] == nil {
					streams[key] = &stream{job: addr, id: j.ID, attempt: t.Number, task: n}
				}
			}
		}
	}
	several := len(streams) > 1
	for _, s := range streams {
		if s.prefix == "" && (several || q.task < 0 && tasks > 1) {
			s.prefix = fmt.Sprintf("%s/%d | ", s.job, s.task)
		}
	}
	switch {
	case q.attempt > 0 && tasks == 0:
		return ended, fmt.Errorf("%s has no attempt %d on record; fray status %s lists them", q.addr, q.attempt, shellWord(q.addr.String()))
	case tasks == 0 && !q.follow:
		return ended, fmt.Errorf("%s has not started yet; fray status %s says why", q.addr, shellWord(q.addr.String()))
	case tasks > 0 && len(streams) == 0:
		return ended, fmt.Errorf("%s has no task %d; its tasks are 0 to %d", q.addr, q.task, tasks/max(matched, 1)-1)
	}
	return ended, nil
}

func streamKey(addr schema.Address, attempt, task int) string {
	return fmt.Sprintf("%s\x00%08d\x00%08d", addr, attempt, task)
}

// drain prints what has been added to a stream, by whole lines.
func (a *app) drain(ctx context.Context, s store.Store, st *stream, tail int) error {
	for {
		data, next, err := agent.TailLogs(ctx, s, st.id, st.attempt, st.task, st.next)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			break
		}
		st.next = next
		st.partial = append(st.partial, data...)
		if tail < 0 || st.trimmed {
			a.lines(st)
		}
	}
	if tail >= 0 && !st.trimmed {
		st.trimmed = true
		st.partial = lastLines(st.partial, tail)
		a.lines(st)
	}
	return nil
}

func lastLines(data []byte, n int) []byte {
	end := len(data)
	if end > 0 && data[end-1] == '\n' {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		if data[i] == '\n' {
			if n--; n <= 0 {
				return data[i+1:]
			}
		}
	}
	return data
}

func (a *app) lines(st *stream) {
	for {
		i := bytes.IndexByte(st.partial, '\n')
		if i < 0 {
			return
		}
		a.logLine(st, st.partial[:i+1])
		st.partial = st.partial[i+1:]
	}
}

func (a *app) flush(st *stream) {
	if len(st.partial) > 0 {
		a.logLine(st, append(st.partial, '\n'))
		st.partial = nil
	}
}

func (a *app) logLine(st *stream, line []byte) {
	if st.prefix != "" {
		_, _ = io.WriteString(a.stdout, st.prefix)
	}
	_, _ = a.stdout.Write(line)
}
