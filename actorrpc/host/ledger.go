package host

import (
	"container/list"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// Limits of what is remembered of callers.
const (
	maxKept      = 256 << 20 // bytes of replies that are not acknowledged
	maxSessions  = 100_000
	answersLast  = 50 * time.Second // after the caller's last connection ended
	sessionLasts = 24 * time.Hour   // likewise: its name and the highest number of its calls
)

// ledger knows which calls of each caller began, and has the answers that
// the caller may still ask for, so that a call which is sent again runs once. A
// call that was rejected did not run: sent again, it is a new one.
type ledger struct {
	limit int64

	mu       sync.Mutex
	sessions map[string]*session
	away     list.List   // of *session, without connections, since the longest first
	left     list.List   // likewise, of which no answers are kept any more
	kept     list.List   // of *entry with an answer, the oldest first
	bytes    int64       // of kept
	large    list.List   // likewise, of answers that have a reservation
	expiry   *time.Timer // of the first that is away; nil: none is
}

// session is one caller, by Handshake.peer.
type session struct {
	peer        string
	highest     uint64
	acked       uint64
	entries     map[uint64]*entry
	connections int
	absence     *list.Element // nil: it has connections
	left        bool          // its answers are not kept
	since       time.Time     // of the absence

	// turn is held from a call's beginning here until its actor has it: calls of
	// two connections, of which one is broken, keep their order.
	turn     sync.Mutex
	incoming incoming // guarded by turn
}

// entry is a call that began.
type entry struct {
	session *session
	seq     uint64
	attempt uint32   // the last
	call    *call    // until it is answered
	to      answerer // who asked last
	answer  *answer
	stream  *stream // nil: none, or the method has not returned one
	size    int64   // of the answer, and of the stream when it ended
	kept    *list.Element
	room    *wire.Reservation // of a large answer
	evicted func()            // called when a large answer is forgotten; nil: nothing waits for it
	refused bool
}

// disposition is what to do with a call that came.
type disposition string

const (
	dispositionNew    disposition = "new"
	dispositionReplay disposition = "replay" // the answer is there
	dispositionAwait  disposition = "await"  // it will be given to who asked now
	dispositionLost   disposition = "lost"   // whether it ran is not known
	dispositionOld    disposition = "old"    // a broken connection brought it after a later one had: no caller waits there
)

func newLedger(limit int64) *ledger { return &ledger{limit: limit, sessions: map[string]*session{}} }

// open is the session of a caller who connected.
func (l *ledger) open(peer string, now time.Time) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions[peer]
	if s == nil {
		s = &session{peer: peer, entries: map[uint64]*entry{}, incoming: incoming{}}
		l.sessions[peer] = s
	}
	s.connections++
	l.present(s)
	l.forget(now)
	return s
}

// present takes a session off the lists of those without connections.
func (l *ledger) present(s *session) {
	switch {
	case s.absence == nil:
	case s.left:
		l.left.Remove(s.absence)
	default:
		l.away.Remove(s.absence)
	}
	s.absence, s.left = nil, false
}

// close notes that a connection of a session ended.
func (l *ledger) close(s *session, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.connections--; s.connections > 0 {
		return
	}
	if s.highest == 0 {
		delete(l.sessions, s.peer) // it never called
		return
	}
	s.since = now
	s.absence = l.away.PushBack(s)
	l.forget(now)
	if l.expiry == nil {
		l.expiry = time.AfterFunc(answersLast, l.expire)
	}
}

// expire frees what callers have left behind.
func (l *ledger) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.forget(now)
	l.expiry = nil
	if first := l.away.Front(); first != nil {
		l.expiry = time.AfterFunc(first.Value.(*session).since.Add(answersLast).Sub(now), l.expire)
	}
}

// forget frees the answers for callers who have been away for a while, and drops others that have been so for
// long, or are too many. What a caller called is known for longer than the answers: without
// that a call which it sends again would run again.
func (l *ledger) forget(now time.Time) {
	for e := l.away.Front(); e != nil; e = l.away.Front() {
		s := e.Value.(*session)
		if now.Sub(s.since) < answersLast && l.away.Len() <= maxSessions {
			break
		}
		for _, one := range s.entries {
			if one.call == nil {
				l.drop(one)
			}
		}
		l.away.Remove(e)
		s.absence, s.left = l.left.PushBack(s), true
	}
	for e := l.left.Front(); e != nil; e = l.left.Front() {
		s := e.Value.(*session)
		if now.Sub(s.since) < sessionLasts && l.left.Len() <= maxSessions {
			return
		}
		l.left.Remove(e)
		delete(l.sessions, s.peer)
	}
}

// begin decides what to do with a call that a caller sent. If it is new it gets an
// entry for its answer; if the answer is there already, it is returned.
func (l *ledger) begin(s *session, c *call, to answerer) (disposition, *answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledge(s, c.in.GetAcked())
	seq := c.in.GetSeq()
	e := s.entries[seq]
	switch {
	case seq > s.highest:
		s.highest = seq
	case e == nil:
		return dispositionLost, nil
	case c.in.GetAttempt() < e.attempt:
		return dispositionOld, nil
	case e.refused:
		l.drop(e)
	case e.call != nil && e.call.transfer > 0 && !e.call.complete: // it cannot have begun
		c.former = e.call
		l.drop(e)
	case e.answer != nil:
		return dispositionReplay, e.answer
	default:
		e.to, e.attempt = to, c.in.GetAttempt()
		return dispositionAwait, nil
	}
	c.entry = &entry{session: s, seq: seq, attempt: c.in.GetAttempt(), call: c, to: to}
	s.entries[seq] = c.entry
	return dispositionNew, nil
}

// finish keeps an answer until it is acknowledged, and returns who is to have it. It takes so
// many bytes beside the answer itself. A large one has a reservation, which is released with it.
func (l *ledger) finish(e *entry, a *answer, beside int64, room *wire.Reservation) answerer {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := e.to
	e.call, e.to = nil, nil
	if e.session.left {
		l.drop(e)
	}
	e.size = size(a) + beside
	if e.session.entries[e.seq] != e {
		room.Release()
		return to // its caller will not ask for it
	}
	failure := a.reply.GetError()
	e.refused = failure != nil && !failure.GetRan()
	e.answer, e.room = a, room
	if room != nil {
		e.kept = l.large.PushBack(e)
		return to
	}
	e.kept = l.kept.PushBack(e)
	l.bytes += e.size
	for l.bytes > l.limit {
		l.drop(l.kept.Front().Value.(*entry))
	}
	return to
}

// refuse notes that a call will not run: one of its number that comes is new.
func (l *ledger) refuse(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.entry != nil {
		c.entry.refused = true
	}
}

// running is the call of a number, nil if it is not there or answered.
func (l *ledger) running(s *session, seq uint64) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := s.entries[seq]; e != nil {
		return e.call
	}
	return nil
}

// ack drops what a caller has.
func (l *ledger) ack(s *session, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledge(s, seq)
}

func (l *ledger) acknowledge(s *session, seq uint64) {
	seq = min(seq, s.highest)
	if seq <= s.acked {
		return
	}
	if seq-s.acked <= uint64(len(s.entries)) {
		for n := s.acked + 1; n <= seq; n++ {
			l.drop(s.entries[n])
		}
	} else {
		for n, e := range s.entries {
			if n <= seq {
				l.drop(e)
			}
		}
	}
	s.acked = seq
}

// drop forgets an entry.
func (l *ledger) drop(e *entry) {
	if e == nil {
		return
	}
	delete(e.session.entries, e.seq)
	if e.call != nil {
		go e.call.giveUp() // its caller has acknowledged it unanswered
	}
	l.unkeep(e)
}

// unkeep frees an answer.
func (l *ledger) unkeep(e *entry) {
	switch {
	case e.kept == nil:
	case e.room != nil:
		l.large.Remove(e.kept)
		e.room.Release()
		e.kept, e.room, e.evicted = nil, nil, nil
	default:
		l.kept.Remove(e.kept)
		l.bytes -= e.size
		e.kept = nil
	}
}

// size is about how much memory an answer takes, in bytes.
func size(a *answer) int64 {
	const overhead = 300
	failure := a.reply.GetError()
	n := overhead + len(a.reply.GetResult()) + len(failure.GetMessage()) + len(failure.GetTraceback())
	for _, b := range a.buffers {
		n += len(b)
	}
	return int64(n)
}

// keptBytes is the size of the answers that are not acknowledged.
func (l *ledger) keptBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// calls are those that are not answered.
func (l *ledger) calls() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*call
	for _, s := range l.sessions {
		for _, e := range s.entries {
			if e.call != nil {
				out = append(out, e.call)
			}
		}
	}
	return out
}

// answer is that to a call whose caller does not have it; nil: there was no room to keep it.
func (l *ledger) answer(s *session, seq uint64) *answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := s.entries[seq]; e != nil {
		return e.answer
	}
	return nil
}

// asks is who is to have the answer to a call.
func (l *ledger) asks(c *call) answerer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.entry == nil {
		return c.to
	}
	return c.entry.to
}

// lend is an answer that is sent in parts now; nil: it is not kept any more. evicted is called if it has to
// be forgotten before it is freed.
func (l *ledger) lend(s *session, seq uint64, evicted func()) *answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := s.entries[seq]
	if e == nil || e.answer == nil {
		return nil
	}
	e.evicted = evicted
	return e.answer
}

// free forgets a large answer that its caller has. Its call is not sent again.
func (l *ledger) free(s *session, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := s.entries[seq]; e != nil && e.room != nil {
		l.drop(e)
	}
}

// evict forgets the oldest large answer, and reports whether there was one.
func (l *ledger) evict() bool {
	l.mu.Lock()
	first := l.large.Front()
	if first == nil {
		l.mu.Unlock()
		return false
	}
	e := first.Value.(*entry)
	evicted := e.evicted
	l.drop(e)
	l.mu.Unlock()
	if evicted != nil {
		evicted()
	}
	return true
}

// opened notes the stream of a call that runs, and returns what it goes to.
func (l *ledger) opened(e *entry, s *stream) sink {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.stream = s
	to, _ := e.to.(sink)
	return to
}

// stream is that of a call, nil if it has none.
func (l *ledger) stream(s *session, seq uint64) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := s.entries[seq]; e != nil {
		return e.stream
	}
	return nil
}

// streamsOf are the calls that run and stream to a sink.
func (l *ledger) streamsOf(s *session, to sink) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*entry
	for _, e := range s.entries {
		if e.call != nil && e.stream != nil && e.to == answerer(to) {
			found = append(found, e)
		}
	}
	return found
}

// abandoned is the call of an entry that runs and streams to a sink still, else nil.
func (l *ledger) abandoned(e *entry, to sink) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.to != answerer(to) {
		return nil
	}
	return e.call
}
