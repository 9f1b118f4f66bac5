package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
)

const (
	// logPace is how often more of a log is looked for.
	logPace = 250 * time.Millisecond
	// defaultTail is how much of a log is shown first, in bytes.
	defaultTail = 64 << 10
	maxTail     = 4 << 20
	// maxStreams bounds the tasks whose logs one stream follows.
	maxStreams = 64
)

// LogChunk is a piece of a task's output. Next is the byte that follows.
type LogChunk struct {
	Task int    `json:"task"`
	Text string `json:"text"` // whole lines, but for the last of a task that has ended
	Next int64  `json:"next"`
	// Cut says that what was written before is left out.
	Cut bool `json:"cut,omitempty"`
	// Times are when lines were written, by rising line: one holds for those that
	// follow, up to the next. Lines before the first have no known time.
	Times []LineTime `json:"times,omitempty"`
}

// LineTime is when a line of a chunk was written.
type LineTime struct {
	Line int       `json:"line"` // from 0
	At   time.Time `json:"at,omitzero"`
}

// LogAnswer is the answer of /api/v1/jobs/{id}/logs where no stream was asked for.
type LogAnswer struct {
	Attempt int        `json:"attempt"`
	Logs    []LogChunk `json:"logs"`
	Ended   bool       `json:"ended"` // the attempt has, so that no more comes
}

// logQuery is what of a job's logs is asked for.
type logQuery struct {
	job     string
	attempt int
	tasks   []int
	tail    int64
}

func readLogQuery(v url.Values, job *state.Job) (logQuery, string) {
	q := logQuery{job: job.ID, attempt: job.Attempt, tail: defaultTail}
	task := -1
	for name, into := range map[string]*int{"attempt": &q.attempt, "task": &task} {
		if text := v.Get(name); text != "" && text != "all" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return q, name + ": want a whole number of at least 0, not \"" + text + "\""
			}
			*into = n
		}
	}
	if text := v.Get("tail"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > maxTail {
			return q, fmt.Sprintf("tail: want a number of bytes between 1 and %d, not %q", maxTail, text)
		}
		q.tail = n
	}
	if task >= 0 {
		q.tasks = []int{task}
		return q, ""
	}
	n := 1
	if a := attemptOf(job, q.attempt); a != nil {
		n = min(max(1, len(a.Tasks)), maxStreams)
	}
	for i := range n {
		q.tasks = append(q.tasks, i)
	}
	return q, ""
}

func attemptOf(job *state.Job, number int) *state.Attempt {
	for i := range job.Attempts {
		if job.Attempts[i].Number == number {
			return &job.Attempts[i]
		}
	}
	return nil
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	e := s.current.Load().look().find(r.PathValue("id"))
	if e == nil {
		fail(w, http.StatusNotFound, "there is no job \""+r.PathValue("id")+"\", or it was forgotten after its end")
		return
	}
	q, wrong := readLogQuery(r.URL.Query(), e.job)
	if wrong != "" {
		fail(w, http.StatusBadRequest, wrong)
		return
	}
	t := newTailer(s.cfg.Logs, q)
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		t.resume(r.Header.Get("Last-Event-ID"))
		s.follow(w, r, t)
		return
	}
	out := LogAnswer{Attempt: q.attempt, Logs: []LogChunk{}, Ended: s.logsEnded(q)}
	size := 0
	keep := func(c LogChunk) error {
		size += len(c.Text)
		out.Logs = append(out.Logs, c)
		return nil
	}
	for more := true; more && size < maxTail; {
		var err error
		if more, err = t.round(r.Context(), keep); err != nil {
			fail(w, http.StatusBadGateway, err.Error())
			return
		}
	}
	if out.Ended {
		_ = t.rest(keep)
	}
	answer(w, http.StatusOK, out)
}

// logsEnded reports whether nothing more will be written.
func (s *Server) logsEnded(q logQuery) bool {
	e := s.current.Load().look().byID[q.job]
	if e == nil {
		return true
	}
	a := attemptOf(e.job, q.attempt)
	if a == nil {
		return e.job.Status.Ended() || q.attempt < e.job.Attempt
	}
	return a.Outcome != ""
}

// settled is how often a log of an attempt that has ended is found without more
// before that counts as its end: agents ship the last lines after the task.
const settled = 8

// follow streams what tasks write until the attempt has ended.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, t *tailer) {
	st, err := openStream(w)
	if err != nil {
		return
	}
	send := func(c LogChunk) error { return st.send("log", t.cursor(), c) }
	pace := time.NewTicker(logPace)
	defer pace.Stop()
	sent := s.cfg.Now()
	for calm := 0; calm < settled; {
		ended := s.logsEnded(t.query)
		more, err := t.round(r.Context(), send)
		switch {
		case r.Context().Err() != nil:
			return
		case err != nil:
			if st.send("problem", "", problem{Error: err.Error()}) != nil {
				return
			}
		case more:
			calm, sent = 0, s.cfg.Now()
			continue
		case ended:
			calm++
		case s.cfg.Now().Sub(sent) > heartbeat:
			if sent = s.cfg.Now(); st.beat() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-pace.C:
		}
	}
	if t.rest(send) == nil {
		_ = st.send("end", "", struct{}{})
	}
}

// tailer reads the logs of some tasks by whole lines.
type tailer struct {
	logs  Logs
	query logQuery
	tasks []tailed // of the query
}

// tailed is how far one task's log was read.
type tailed struct {
	next  int64         // where to read on
	part  []byte        // the beginning of a line whose end was not read yet
	times logtime.Index // of what was read last
	begun bool
	cut   bool // the first piece begins somewhere within
}

func newTailer(logs Logs, q logQuery) *tailer {
	t := &tailer{logs: logs, query: q, tasks: make([]tailed, len(q.tasks))}
	for i := range t.tasks {
		t.tasks[i].next = -q.tail
	}
	return t
}

// cursor says how far each task was sent.
func (t *tailer) cursor() string {
	parts := make([]string, len(t.tasks))
	for i := range t.tasks {
		if of := &t.tasks[i]; of.begun {
			parts[i] = strconv.FormatInt(max(0, of.next)-int64(len(of.part)), 10)
		}
	}
	return strings.Join(parts, "-")
}

// resume goes on behind a cursor of the same query.
func (t *tailer) resume(cursor string) {
	parts := strings.Split(cursor, "-")
	if len(parts) != len(t.tasks) {
		return
	}
	for i, text := range parts {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			t.tasks[i].next, t.tasks[i].begun = n, true
		}
	}
}

// round sends what is new of each task, and reports whether there was any.
func (t *tailer) round(ctx context.Context, send func(LogChunk) error) (more bool, err error) {
	for i, task := range t.query.tasks {
		of := &t.tasks[i]
		read, err := t.logs.Read(ctx, LogStream{Job: t.query.job, Attempt: t.query.attempt, Task: task}, of.next)
		if err != nil {
			return more, err
		}
		if len(read.Data) == 0 {
			continue
		}
		more = true
		n := of.take(read)
		if n == 0 && len(of.part) > 1<<20 { // a line without end is sent as it comes
			n = len(of.part)
		}
		if err := t.flush(i, n, send); err != nil {
			return more, err
		}
	}
	return more, nil
}

// take adds what was read, and returns how much of all are whole lines.
func (t *tailed) take(read store.LogPart) int {
	data := read.Data
	if !t.begun && read.Offset > 0 {
		// The first line is likely to be the end of one.
		t.cut = true
		if n := bytes.IndexByte(data, '\n'); n >= 0 {
			data = data[n+1:]
		}
	}
	t.next, t.begun, t.times = read.Offset+int64(len(read.Data)), true, read.Times
	t.part = append(t.part, data...)
	return bytes.LastIndexByte(t.part, '\n') + 1
}

// flush sends the first n bytes of what was read of a task.
func (t *tailer) flush(i, n int, send func(LogChunk) error) error {
	if n == 0 {
		return nil
	}
	of := &t.tasks[i]
	raw := of.part[:n]
	chunk := LogChunk{
		Task: t.query.tasks[i], Text: string(bytes.ToValidUTF8(raw, []byte("\ufffd"))), Cut: of.cut,
		Times: lineTimes(raw, of.next-int64(len(of.part)), of.times),
	}
	of.part = bytes.Clone(of.part[n:])
	chunk.Next = of.next - int64(len(of.part))
	of.cut = false
	return send(chunk)
}

// lineTimes are the times of the lines of a text that begins at an offset of a log.
func lineTimes(text []byte, offset int64, times logtime.Index) []LineTime {
	var out []LineTime
	var last time.Time
	n := 0
	for line := range bytes.Lines(text) {
		offset += int64(len(line))
		if at := times.At(offset - 1); !at.Equal(last) {
			out, last = append(out, LineTime{Line: n, At: at}), at
		}
		n++
	}
	return out
}

// rest sends the lines that have no end.
func (t *tailer) rest(send func(LogChunk) error) error {
	for i := range t.tasks {
		if err := t.flush(i, len(t.tasks[i].part), send); err != nil {
			return err
		}
	}
	return nil
}
