package follow

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// logKey names one task's output.
type logKey struct {
	job     schema.Address
	attempt int
	task    int
}

func (k logKey) compare(o logKey) int {
	return cmp.Or(k.job.Compare(o.job), cmp.Compare(k.attempt, o.attempt), cmp.Compare(k.task, o.task))
}

// logStream is one task's output and how far it has been printed. What a host
// sends meanwhile changes it too: next to trimmed are the printer's mutex's.
type logStream struct {
	logKey
	id      string      // of the job: its logs stay where they are when it is moved
	place   *state.Task // where it runs
	running bool        // its attempt is not over

	prefix  string
	next    int64
	partial []byte // a line whose end has not come yet
	trimmed bool   // --tail and --since were applied

	live    bool // a host sends it
	whole   bool // a host has sent it to its end
	retryAt time.Time
}

// name is where the store has it.
func (s *logStream) name() store.LogName {
	return store.LogName{Job: s.id, Attempt: s.attempt, Task: s.task}
}

// logPrinter prints lines of many tasks as they come. Its streams are the main
// loop's; lines come from hosts too.
type logPrinter struct {
	terminal *terminal.Terminal
	store    store.Store
	query    Query
	colored  bool
	live     *liveLogs
	streams  map[logKey]*logStream

	mu    sync.Mutex // held for whole lines
	out   bytes.Buffer
	lined bool // a line was printed
}

func newLogPrinter(a *terminal.Terminal, s store.Store, q Query) *logPrinter {
	return &logPrinter{terminal: a, store: s, query: q, colored: a.Color(a.Stdout), streams: map[logKey]*logStream{}}
}

// stream is the one of a key, new if need be.
func (p *logPrinter) stream(key logKey) *logStream {
	s := p.streams[key]
	if s == nil {
		s = &logStream{logKey: key}
		p.streams[key] = s
	}
	return s
}

// has reports whether an attempt is printed.
func (p *logPrinter) has(job schema.Address, attempt int) bool {
	for key := range p.streams {
		if key.job == job && key.attempt == attempt {
			return true
		}
	}
	return false
}

// name gives streams their prefix, where there is more than one.
func (p *logPrinter) name(several bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !several || p.query.Bare {
		return
	}
	for _, s := range p.streams {
		if s.prefix == "" {
			s.prefix = p.paint(fmt.Sprintf("%s/%d |", s.job, s.task)) + " "
		}
	}
}

// paint colours a prefix on a terminal, the same one always the same.
func (p *logPrinter) paint(prefix string) string {
	if !p.colored {
		return prefix
	}
	colors := []int{31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96} // of the text; neither black nor white
	h := fnv.New32a()
	_, _ = h.Write([]byte(prefix)) // never fails
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colors[h.Sum32()%uint32(len(colors))], prefix)
}

// sorted are the streams by job, attempt and task.
func (p *logPrinter) sorted() []*logStream {
	all := make([]*logStream, 0, len(p.streams))
	for _, s := range p.streams {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *logStream) int { return a.compare(b.logKey) })
	return all
}

// drain prints what the store has, of streams that no host sends.
func (p *logPrinter) drain(ctx context.Context) error {
	for _, s := range p.sorted() {
		p.mu.Lock()
		live := s.live
		p.mu.Unlock()
		if live {
			continue
		}
		if err := p.drainOne(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// drainOne prints what has been added to a stream, by whole lines. No host
// sends it meanwhile.
func (p *logPrinter) drainOne(ctx context.Context, s *logStream) error {
	if !s.trimmed && p.query.Since > 0 {
		var err error
		if s.next, err = p.firstSince(ctx, s); err != nil {
			return err
		}
	}
	_, err := store.ReadLog(ctx, p.store, s.name(), s.next, func(data []byte) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.next += int64(len(data))
		s.partial = append(s.partial, data...)
		if p.query.Tail < 0 || s.trimmed {
			p.lines(s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.query.Tail >= 0 && !s.trimmed {
		s.partial = lastLines(s.partial, p.query.Tail)
		p.lines(s)
	}
	s.trimmed = true
	return nil
}

// firstSince is the offset of the first part of the log that was written to
// lately. What is before it in time is told by the parts' own times only.
func (p *logPrinter) firstSince(ctx context.Context, s *logStream) (int64, error) {
	chunks, err := p.store.List(ctx, store.LogsOf(s.id, s.attempt, s.task))
	if err != nil {
		return 0, fmt.Errorf("list logs of %s: %w", s.job, err)
	}
	var offset int64
	from := time.Now().Add(-p.query.Since)
	for _, c := range chunks {
		if !c.Updated.Before(from) {
			break
		}
		offset += c.Size
	}
	return offset, nil
}

// heard takes what a host has sent.
func (p *logPrinter) heard(s *logStream, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.next += int64(len(data))
	s.partial = append(s.partial, data...)
	p.lines(s)
}

// flush prints lines whose ends will not come.
func (p *logPrinter) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sorted() {
		if len(s.partial) > 0 {
			s.partial = append(s.partial, '\n')
			p.lines(s)
		}
	}
}

// printed reports whether any line was.
func (p *logPrinter) printed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lined
}

// pace is when to look again: soon, where there is something that only the
// store reports.
func (p *logPrinter) pace() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.streams {
		if s.running && !s.live {
			return followPace
		}
	}
	if len(p.streams) == 0 {
		return followPace
	}
	return statePace
}

// lines prints the whole lines that have come.
func (p *logPrinter) lines(s *logStream) {
	end := bytes.LastIndexByte(s.partial, '\n') + 1
	if end == 0 {
		return
	}
	p.lined = true
	if s.prefix == "" {
		_, _ = p.terminal.Stdout.Write(s.partial[:end])
	} else {
		p.out.Reset()
		for line := range bytes.Lines(s.partial[:end]) {
			p.out.WriteString(s.prefix)
			p.out.Write(line)
		}
		_, _ = p.terminal.Stdout.Write(p.out.Bytes())
	}
	s.partial = append(s.partial[:0], s.partial[end:]...)
}

func lastLines(data []byte, n int) []byte {
	if n == 0 {
		return nil
	}
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
