package follow

import (
	"bytes"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
)

// logKey names one task's output.
type logKey struct {
	job     schema.Address
	attempt int
	task    int
}

// logStream is one task's output and how far it has been printed. What a host
// sends meanwhile changes it too: only to retryAt are the printer's mutex's.
type logStream struct {
	logKey
	id      string      // of the job: its logs stay where they are when it is moved
	place   *state.Task // where it runs
	running bool        // its attempt is not over

	prefix  string
	only    []byte // what a line begins with to be printed; nil: all are
	next    int64
	partial []byte        // a line whose end has not come yet
	times   logtime.Index // of what came last
	lines   []line        // that are not printed yet, by rising order
	last    time.Time     // the order of the last line that came
	trimmed bool          // --tail and --since were applied

	live    bool // a host sends it
	whole   bool // a host has sent it to its end
	retryAt time.Time
}

// line of a task's output.
type line struct {
	text    []byte    // with its end
	at      time.Time // when its end was written; zero: not known
	order   time.Time // at, or where that is not known or earlier, that of the line before
	arrived time.Time // here
}

// name is where the store has it.
func (s *logStream) name() store.LogName {
	return store.LogName{Job: s.id, Attempt: s.attempt, Task: s.task}
}

// take makes lines of what was written next. Those that are known to be from before a
// time are left out.
func (s *logStream) take(part store.LogPart, since time.Time) {
	now := time.Now()
	begin := s.next - int64(len(s.partial))
	s.next += int64(len(part.Data))
	s.times = part.Times
	data := part.Data
	if len(s.partial) > 0 {
		data = append(s.partial, data...)
	}
	for {
		n := bytes.IndexByte(data, '\n') + 1
		if n == 0 {
			break
		}
		begin += int64(n)
		s.add(line{text: data[:n:n], at: part.Times.At(begin - 1), arrived: now}, since)
		data = data[n:]
	}
	s.partial = bytes.Clone(data)
}

// finish makes a line of what has no end.
func (s *logStream) finish(since time.Time) {
	if len(s.partial) == 0 {
		return
	}
	s.add(line{text: append(s.partial, '\n'), at: s.times.At(s.next - 1), arrived: time.Now()}, since)
	s.partial = nil
}

func (s *logStream) add(l line, since time.Time) {
	if l.order = l.at; l.order.Before(s.last) {
		l.order = s.last
	}
	s.last = l.order
	if !bytes.HasPrefix(l.text, s.only) {
		return
	}
	if l.at.IsZero() || !l.at.Before(since) {
		s.lines = append(s.lines, l)
	}
}
