package hosts

import (
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/state"
)

// Times of a table.
const (
	// quietAfter is how long a connected host may be silent before the loop looks for it in
	// the store, too: longer than hosts go on by the stream alone.
	quietAfter = 10 * time.Second
	sweepPace  = time.Second
	// wakePace is the least time between two tokens for the loop.
	wakePace = 100 * time.Millisecond
	// comingPace is the same where hosts come: after a takeover, say, many do for seconds.
	comingPace = time.Second
	// maxGap is the most that the time since the loop's last look counts for silence, as in
	// apply.
	maxGap = 5 * time.Second
)

// Table has the newest reports of the hosts that are connected in one term.
type Table struct {
	wake chan<- struct{}
	key  *sealed.LeaderKey // of the term; nil: hosts do not speak through relays

	mu          sync.Mutex
	hosts       map[key]*entry
	changed     []*entry                    // since the last Take
	assigned    map[string]state.Generation // of the object in the store, by slice
	of          map[string][]*entry         // hosts that are connected, by slice
	sessions    map[*session]bool
	authorities *clusterapi.HostAuthorities // nil: none are known

	monitored time.Duration // of the loop, at its last look
	looked    time.Time     // then
	swept     time.Time
	tokenAt   time.Time
	wakeAt    time.Time   // when a token follows
	waking    *time.Timer // which gives it; nil: none follows
	alive     int

	offers       map[string]time.Time // of channels that hosts have begun, and when their tokens expire
	offersPruned time.Time
}

var _ apply.Live = (*Table)(nil)

type key struct {
	slice string
	host  int
}

// entry is a host that is connected, or was until a moment ago.
type entry struct {
	key
	report   *state.HostReport // nil: none yet
	seq      uint64            // of the newest message
	heard    time.Duration     // by the loop's monitored time
	live     bool              // connected and heard
	session  *session          // by which it was heard last; nil: none
	number   uint32            // in the session
	changed  bool              // it is in the table's list
	speakers int               // sessions in which it has a number
	news     bool              // its report differs from what the loop has
}

// speaker is a host as one stream speaks for it.
type speaker struct {
	*entry
	boot  string
	known state.Generation // of the assignment's object that it has, or was sent by the stream
	among int              // how many hosts there were when it was told its pace
}

func newTable(wake chan<- struct{}) *Table {
	return &Table{wake: wake, hosts: map[key]*entry{}, assigned: map[string]state.Generation{}, of: map[string][]*entry{}, sessions: map[*session]bool{}, offers: map[string]time.Time{}, looked: time.Now()}
}

func (t *Table) opened(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[s] = true
	if s.authorities = t.authorities; s.authorities != nil {
		s.signal()
	}
}

// closed takes note that a stream has ended.
func (t *Table) closed(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sessions, s)
	for number := range s.hosts {
		t.leaveLocked(s, number)
	}
}

func (t *Table) leave(s *session, number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(s.relayed, number)
	t.leaveLocked(s, number)
}

func (t *Table) leaveLocked(s *session, number uint32) {
	e := s.hosts[number]
	delete(s.hosts, number)
	delete(s.out, number)
	if e.entry == nil {
		return
	}
	e.speakers--
	if e.session == s && e.number == number {
		e.session = nil
		t.setLive(e.entry, false)
	}
	t.forget(e.entry)
}

// hello takes in that a host speaks through a stream, and reports whether it may.
func (t *Table) hello(s *session, number uint32, of *clusterapi.HostHello) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.hosts[number].entry == nil && len(s.hosts) >= maxHosts {
		return false
	}
	at := key{of.GetSlice(), int(of.GetHost())}
	if before := s.hosts[number].entry; before != nil && before.key != at {
		t.leaveLocked(s, number)
	}
	e := t.hosts[at]
	if e == nil {
		e = &entry{key: at}
		t.hosts[at] = e
		t.of[at.slice] = append(t.of[at.slice], e)
	}
	if s.hosts[number].entry == nil {
		e.speakers++
	}
	s.hosts[number] = speaker{entry: e, boot: of.GetBoot(), known: state.Generation(of.GetAssignment())}
	t.pace(s, number)
	if s.relayed[number] != nil {
		s.to(number).authorities = t.authorities
	}
	t.catchUp(s, number)
	return true
}

// catchUp tells a host of an assignment that was written before the host spoke by the stream.
func (t *Table) catchUp(s *session, number uint32) {
	if e := s.hosts[number]; t.assigned[e.slice] > e.known {
		s.assign(number, version(t.assigned[e.slice], nil))
	}
}

// assign sends a version of the assignment to a host, unless it has a newer one.
func (s *session) assign(number uint32, a *clusterapi.HostAssignment) {
	e := s.hosts[number]
	if object := state.Generation(a.GetObject()); object > e.known {
		e.known = object
		s.hosts[number] = e
		s.to(number).assignment = a
	}
}

// pace tells a host its pace.
func (t *Table) pace(s *session, number uint32) {
	e := s.hosts[number]
	e.among = len(t.hosts)
	s.hosts[number] = e
	s.to(number).welcome = welcome(len(t.sessions), e.among)
}

func (t *Table) reject(s *session, number uint32, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked(s, number)
	s.to(number).rejected = why
}

// report takes in a report, unless a newer one is known. The answer is the number of the
// newest, whichever that is.
func (t *Table) report(s *session, number uint32, m *clusterapi.LiveReport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := s.hosts[number]
	switch {
	case e.entry == nil && s.relayed[number] != nil: // its hello was lost
		s.to(number).whole = true
		return
	case e.entry == nil: // it left, or was rejected
		return
	case m.GetSeq() < e.seq && e.report != nil && e.report.Boot != e.boot:
		// Numbers rise across boots. This agent has lost its own, or is a former one.
		t.leaveLocked(s, number)
		s.to(number).rejected = "another agent of this host has reported with higher numbers"
		return
	case m.GetSeq() < e.seq: // it comes late
		s.to(number).received = e.seq
		return
	case m.GetSeq() > e.seq:
		if !hostlink.Fits(e.report, m) {
			s.to(number).whole = true
			return
		}
		if err := t.merge(e, m); err != nil {
			s.hub.log.Warn("a host's report not read", "slice", e.slice, "host", e.host, "error", err)
			t.leaveLocked(s, number)
			s.to(number).rejected = "its report cannot be read"
			return
		}
	}
	// The same number is the same report, by another stream maybe.
	e.seq, e.session, e.number = m.GetSeq(), s, number
	e.heard = t.monitored + min(time.Since(t.looked), maxGap)
	s.to(number).received = e.seq
	if len(t.hosts) > 2*e.among { // it came as one of the first
		t.pace(s, number)
	}
	t.catchUp(s, number)
	t.setLive(e.entry, true)
}

// merge makes the report of a message the host's.
func (t *Table) merge(e speaker, m *clusterapi.LiveReport) error {
	if hostlink.IsHeartbeat(m) {
		return nil
	}
	r, err := hostlink.Merge(e.report, m)
	if err != nil {
		return err
	}
	r.Slice, r.Host, r.Boot = e.slice, e.host, e.boot
	switch {
	case e.report == nil:
		t.wakeAfter(comingPace)
	case hostlink.Durable(e.report, r):
		t.wakeAfter(wakePace)
	}
	e.report, e.news = r, true
	t.note(e.entry)
	return nil
}

// setLive notes whether a host is connected and heard.
func (t *Table) setLive(e *entry, live bool) {
	if e.live == live {
		return
	}
	e.live = live
	if live {
		t.alive++
	} else {
		t.alive--
	}
	t.note(e)
}

// note has the loop look at a host.
func (t *Table) note(e *entry) {
	if !e.changed {
		e.changed = true
		t.changed = append(t.changed, e)
	}
}

// forget drops a host that is not connected, once the loop knows it.
func (t *Table) forget(e *entry) {
	if e.speakers > 0 || e.live || e.changed {
		return
	}
	delete(t.hosts, e.key)
	left := slices.DeleteFunc(t.of[e.slice], func(o *entry) bool { return o == e })
	if len(left) == 0 {
		delete(t.of, e.slice)
	} else {
		t.of[e.slice] = left
	}
}

// wakeAfter gives the loop a token once the last one is so long ago.
func (t *Table) wakeAfter(pace time.Duration) {
	at := t.tokenAt.Add(pace)
	if t.waking != nil && (!at.Before(t.wakeAt) || !t.waking.Stop()) {
		return
	}
	t.wakeAt = at
	t.waking = time.AfterFunc(time.Until(at), func() {
		t.mu.Lock()
		t.waking, t.tokenAt = nil, time.Now()
		t.mu.Unlock()
		select {
		case t.wake <- struct{}{}:
		default:
		}
	})
}

// outgoing takes what waits to be sent by a stream.
func (t *Table) outgoing(s *session) *clusterapi.ControllerMessages {
	t.mu.Lock()
	batch := &clusterapi.ControllerMessages{Messages: make([]*clusterapi.ControllerMessage, 0, len(s.out)), Authorities: s.authorities}
	var sealing []func()
	for number, o := range s.out {
		m := o.message(number)
		batch.Messages = append(batch.Messages, m)
		if r, at := s.relayed[number], len(batch.Messages)-1; r != nil {
			sealing = append(sealing, func() { batch.Messages[at] = r.seal(m, o.authorities) })
		}
	}
	clear(s.out)
	s.authorities = nil
	t.mu.Unlock()
	for _, seal := range sealing { // which takes its time
		seal()
	}
	return batch
}

func (t *Table) live() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.alive
}

// Take returns what changed of hosts since the last call. monitored is for how long the
// loop has monitored hosts.
func (t *Table) Take(monitored time.Duration) []apply.LiveHost {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.monitored, t.looked = monitored, time.Now()
	if t.looked.Sub(t.swept) >= sweepPace {
		t.swept = t.looked
		for _, e := range t.hosts {
			if e.live && monitored-e.heard > quietAfter {
				t.setLive(e, false)
			}
		}
	}
	if len(t.changed) == 0 {
		return nil
	}
	changed := make([]apply.LiveHost, len(t.changed))
	for i, e := range t.changed {
		changed[i] = apply.LiveHost{Slice: e.slice, Host: e.host, Live: e.live, Heard: e.heard, Seq: e.seq}
		if e.news {
			changed[i].Report = e.report
		}
		e.changed, e.news = false, false
	}
	for _, e := range t.changed {
		t.forget(e)
	}
	t.changed = nil
	return changed
}

// Assigned sends a version of an assignment, which is in the store, to the hosts of its
// slice that are connected. data is its content; nil: they read it there.
func (t *Table) Assigned(slice string, object state.Generation, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if object <= t.assigned[slice] {
		return
	}
	t.assigned[slice] = object
	pushed := version(object, data)
	for _, e := range t.of[slice] {
		if e.session != nil {
			e.session.assign(e.number, pushed)
		}
	}
}

// Authorities sends hosts which authorities certify actors, as an object of the store has it.
func (t *Table) Authorities(object state.Generation, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.authorities = &clusterapi.HostAuthorities{Object: int64(object), Data: data}
	for s := range t.sessions {
		s.authorities = t.authorities
		s.signal()
		for number := range s.relayed {
			s.to(number).authorities = t.authorities
		}
	}
}

// Unassigned takes note that a slice has no assignment any more.
func (t *Table) Unassigned(slice string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.assigned, slice)
}
