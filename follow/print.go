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
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// logPrinter prints lines of many tasks as they come, or where there are several
// tasks by the times of the lines. Its streams are the main loop's; lines come from
// hosts too.
type logPrinter struct {
	terminal *terminal.Terminal
	store    store.Store
	query    Query
	since    time.Time // zero: from the beginning
	colored  bool
	live     *liveLogs
	streams  map[logKey]*logStream

	mu     sync.Mutex // held for whole lines
	merged bool       // there are several streams, whose lines are merged
	out    bytes.Buffer
	lined  bool // a line was printed
}

func newLogPrinter(a *terminal.Terminal, s store.Store, q Query) *logPrinter {
	p := &logPrinter{terminal: a, store: s, query: q, colored: a.Color(a.Stdout), streams: map[logKey]*logStream{}}
	if q.Since > 0 {
		p.since = time.Now().Add(-q.Since)
	}
	return p
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

// keepOnly has a stream print only the lines that begin with a prefix, from now on.
func (p *logPrinter) keepOnly(s *logStream, prefix string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.only = []byte(prefix)
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
	if !several {
		return
	}
	p.merged = true
	if p.query.Bare {
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

// drain takes what the store has, of streams that no host sends. What it has when a
// stream is read first is printed at once; what comes later is merged with what hosts
// send. At the end lines without an end are printed, too.
func (p *logPrinter) drain(ctx context.Context, end bool) error {
	p.mu.Lock()
	var fresh, more []*logStream
	for _, s := range p.sorted() {
		switch {
		case s.live:
		case s.trimmed:
			more = append(more, s)
		default:
			fresh = append(fresh, s)
		}
	}
	p.mu.Unlock()
	if err := p.backlog(ctx, fresh, end); err != nil {
		return err
	}
	for _, s := range more {
		err := p.read(ctx, s, func(part store.LogPart) error {
			p.heard(s, part)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if end {
		p.flush()
	}
	return nil
}

// read reads what follows in the store of a stream, with times where they matter.
func (p *logPrinter) read(ctx context.Context, s *logStream, yield func(store.LogPart) error) error {
	if p.merged || p.query.Timestamps || !p.since.IsZero() {
		_, err := store.ReadDatedLog(ctx, p.store, s.name(), s.next, yield)
		return err
	}
	_, err := store.ReadLog(ctx, p.store, s.name(), s.next, func(data []byte) error { return yield(store.LogPart{Data: data}) })
	return err
}

// firstSince is the offset of the first part of the log that was written to
// lately. What is before it in time is told by the parts' own times only.
func (p *logPrinter) firstSince(ctx context.Context, s *logStream) (int64, error) {
	chunks, err := p.store.List(ctx, store.LogsOf(s.id, s.attempt, s.task))
	if err != nil {
		return 0, fmt.Errorf("list logs of %s: %w", s.job, err)
	}
	var offset int64
	for _, c := range chunks {
		if !c.Updated.Before(p.since) {
			break
		}
		offset += c.Size
	}
	return offset, nil
}

// heard takes what was written to a stream. Where there are several, its lines wait
// for those of others.
func (p *logPrinter) heard(s *logStream, part store.LogPart) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.take(part, p.since)
	if !p.merged {
		p.print(s, s.lines)
		s.lines = nil
	}
}

// release prints the lines that have waited for those of other tasks, and with all
// those that have not, by time.
func (p *logPrinter) release(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	bound, any := p.due(all)
	heads := &lineHeap{}
	for _, s := range p.streams {
		if any && len(s.lines) > 0 && !s.lines[0].order.After(bound) {
			heads.add(s)
		}
	}
	for s := heads.least(); s != nil && !s.lines[0].order.After(bound); s = heads.least() {
		p.print(s, s.lines[:1])
		s.lines = s.lines[1:]
		heads.update()
	}
}

// due is the order of the last line that has waited enough; false if there is none.
func (p *logPrinter) due(all bool) (bound time.Time, any bool) {
	before := time.Now().Add(-mergeWait)
	for _, s := range p.streams {
		for i := range s.lines {
			l := &s.lines[i]
			if (all || l.arrived.Before(before)) && (!any || l.order.After(bound)) {
				bound, any = l.order, true
			}
		}
	}
	return bound, any
}

// flush prints all that has come, lines without an end among it.
func (p *logPrinter) flush() {
	p.mu.Lock()
	for _, s := range p.streams {
		s.finish(p.since)
	}
	p.mu.Unlock()
	p.release(true)
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

// timeFormat is that of --timestamps; noTime stands where none is known.
const (
	timeFormat = "2006-01-02T15:04:05.000Z "
	noTime     = "-                        "
)

// print prints lines of one stream.
func (p *logPrinter) print(s *logStream, lines []line) {
	if len(lines) == 0 {
		return
	}
	p.lined = true
	p.out.Reset()
	for _, l := range lines {
		p.out.WriteString(s.prefix)
		if p.query.Timestamps {
			p.out.WriteString(stamp(l.at))
		}
		p.out.Write(l.text)
		if p.out.Len() >= printSize {
			_, _ = p.terminal.Stdout.Write(p.out.Bytes())
			p.out.Reset()
		}
	}
	_, _ = p.terminal.Stdout.Write(p.out.Bytes())
}

// printSize is from when on lines are written, in bytes.
const printSize = 64 << 10

func stamp(at time.Time) string {
	if at.IsZero() {
		return noTime
	}
	return at.UTC().Format(timeFormat)
}

func (k logKey) compare(o logKey) int {
	return cmp.Or(k.job.Compare(o.job), cmp.Compare(k.attempt, o.attempt), cmp.Compare(k.task, o.task))
}
