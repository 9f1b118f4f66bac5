package hosts

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

// hosts of the model's slice.
const modelHosts = 2

// modelNews is what a host of the model reports: its attempt, which rises, and what it was last
// assigned.
type modelNews struct {
	attempt    int
	generation int64
}

func newsOf(r *state.HostReport) modelNews { return modelNews{r.Task.Attempt, r.Generation} }

// modelHost is a host.
type modelHost struct {
	number int
	seq    uint64
	boot   string
	modelNews
	was     map[uint64]modelNews // what was reported with each number: the oracle
	newest  state.HostReport
	writing *state.HostReport // on its way to the store
}

// report is the host's report with a number of its own.
func (h *modelHost) report() state.HostReport {
	h.seq++
	h.was[h.seq] = h.modelNews
	h.newest = state.HostReport{Slice: "a", Host: h.number, Boot: h.boot, Seq: h.seq, Generation: h.generation,
		Task: &state.TaskReport{Attempt: h.attempt, State: schema.TaskRunning}}
	return h.newest
}

// modelStream is a stream of one host, or of a relay that speaks for all, which are sealed but
// for its own: messages in both directions may be lost, doubled and swapped, and a relay may
// change them and make others.
type modelStream struct {
	session  *session
	of       []*modelHost
	leader   []byte
	channels map[int]*sealed.Channel   // of those behind the relay
	sent     map[int]*state.HostReport // what the last message changed, by host; none: it begins with a hello
	up       []*clusterapi.HostMessage
	kept     []*clusterapi.HostMessage // all that arrived, for a relay that repeats them
	open     bool
}

// behind reports whether a host speaks through the relay.
func (s *modelStream) behind(h *modelHost) bool { return len(s.of) > 1 && h != s.of[0] }

// send hands a report over to a stream, as the client does.
func (s *modelStream) send(t *rapid.T, h *modelHost) {
	r := h.report()
	m := &clusterapi.HostMessage{Number: uint32(h.number)}
	if before := s.sent[h.number]; before == nil {
		m.Hello = &clusterapi.HostHello{Slice: "a", Host: uint32(h.number), Boot: h.boot}
		m.Report = hostlink.Whole(&r)
		s.sent[h.number] = &r
	} else if m.Report = hostlink.Delta(before, &r); !hostlink.IsHeartbeat(m.Report) {
		s.sent[h.number] = &r
	}
	if s.behind(h) {
		m = s.seal(t, h, m)
	}
	s.up = append(s.up, m)
}

// modelController is one that leads, or believes that it does.
type modelController struct {
	hub      *Hub
	public   []byte // of its term
	table    *Table
	observer *apply.Observer
	streams  []*modelStream
	seen     map[int]uint64 // the highest number that was observed, by host
}

// model is a slice with its store and the controllers that it has had.
type model struct {
	now   time.Time
	store *storetest.Memory
	hosts []*modelHost
	all   []*modelController
	err   error
}

// takeOver makes another controller lead.
func (w *model) takeOver() {
	c := &modelController{hub: New(slog.New(slog.DiscardHandler), relayedToken), seen: map[int]uint64{}}
	if c.public, w.err = c.hub.NewKey(); w.err != nil {
		return
	}
	c.table = c.hub.Lead(make(chan struct{}, 1))
	c.observer = &apply.Observer{Store: w.store, Live: c.table, Now: func() time.Time { return w.now }}
	w.all = append(w.all, c)
}

func (w *model) leader() *modelController { return w.all[len(w.all)-1] }

// connect begins a stream to a controller.
func (c *modelController) connect(of ...*modelHost) *modelStream {
	s := &modelStream{of: of, leader: c.public, channels: map[int]*sealed.Channel{}, sent: map[int]*state.HostReport{}, open: true}
	s.session = &session{hub: c.hub, table: c.table, who: caller.Caller{Kind: caller.Host, Slice: "a", Host: of[0].number}, wake: make(chan struct{}, 1),
		hosts: map[uint32]speaker{}, out: map[uint32]*outgoing{}}
	c.table.opened(s.session)
	c.streams = append(c.streams, s)
	return s
}

// arrive has a message come to the controller.
func (c *modelController) arrive(t *rapid.T, s *modelStream, m *clusterapi.HostMessage) {
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	s.kept = append(s.kept, m)
	got := &clusterapi.HostMessage{}
	if err := proto.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	before := map[key]uint64{}
	for at, e := range c.table.hosts {
		before[at] = e.seq
	}
	if err := s.session.receive(context.Background(), got); err != nil {
		t.Fatal(err)
	}
	for at, e := range c.table.hosts {
		if e.seq < before[at] {
			t.Fatalf("%+v was known by number %d, and then by %d", at, before[at], e.seq)
		}
	}
}

// answer has what the controller sends arrive, or not. What it acknowledges it knows.
func (c *modelController) answer(t *rapid.T, s *modelStream, lost bool) {
	for _, m := range c.table.outgoing(s.session).GetMessages() {
		h := s.of[0]
		for _, each := range s.of {
			if each.number == int(m.GetNumber()) {
				h = each
			}
		}
		if s.behind(h) {
			if m = s.unseal(t, h, m); m == nil {
				continue
			}
		}
		if n := m.GetReceived(); n != 0 {
			e := c.table.hosts[key{"a", h.number}]
			if e == nil || e.report.Task.Attempt < h.was[n].attempt || e.report.Generation < h.was[n].generation {
				t.Fatalf("number %d of host %d is acknowledged, which is of %+v, and %+v is known", n, h.number, h.was[n], e)
			}
		}
		if m.GetWhole() && !lost {
			delete(s.sent, h.number)
		}
	}
}

// look observes and compares with the oracle.
func (c *modelController) look(t *rapid.T, w *model) map[int]modelNews {
	obs, err := c.observer.Observe(context.Background(), "stack")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]modelNews{}
	for _, h := range obs.Hosts["a"] {
		got, want := newsOf(&h.HostReport), w.hosts[h.Host].was[h.Seq]
		if seen[h.Host] = got; got != want {
			t.Fatalf("host %d is seen as %+v, and number %d was of %+v", h.Host, got, h.Seq, want)
		}
		if h.Seq < c.seen[h.Host] {
			t.Fatalf("host %d was observed by number %d, and then by %d", h.Host, c.seen[h.Host], h.Seq)
		}
		c.seen[h.Host] = h.Seq
	}
	return seen
}

// step is something that happens to a model.
type step int

// The steps, each as often as it is named.
const (
	stepNews step = iota
	stepBoot
	stepConnect
	stepSend
	stepArrive
	stepLose
	stepForge
	stepReplay
	stepAnswer
	stepCut
	stepWrite
	stepWritten
	stepTakeOver
	stepLook
)

var steps = []step{
	stepNews, stepNews, stepBoot, stepConnect, stepConnect, stepSend, stepSend, stepSend, stepSend, stepSend,
	stepArrive, stepArrive, stepArrive, stepArrive, stepArrive, stepArrive, stepLose, stepForge, stepForge, stepReplay, stepAnswer, stepAnswer, stepAnswer,
	stepCut, stepWrite, stepWrite, stepWritten, stepWritten, stepTakeOver, stepLook, stepLook, stepLook, stepLook,
}

// However messages by stream and writes to the store are mixed, lost, late, doubled or
// swapped, under any leader and whichever relay dies or lies: no report takes the place of a newer one,
// none is acknowledged that is not known, and the newest is seen by either way alone.
func TestReportsByBothWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &model{now: time.Now(), store: storetest.NewMemory()}
		for n := range modelHosts {
			w.hosts = append(w.hosts, &modelHost{number: n, boot: "first", was: map[uint64]modelNews{}})
		}
		w.takeOver()
		if w.err != nil {
			t.Fatal(w.err)
		}
		for _, next := range rapid.SliceOfN(rapid.SampledFrom(steps), 100, 200).Draw(t, "steps") {
			w.step(t, next)
		}
		w.settle(t)
	})
}

func (w *model) step(t *rapid.T, next step) {
	h := w.hosts[rapid.IntRange(0, modelHosts-1).Draw(t, "host")]
	c := w.leader()
	if len(w.all) > 1 && rapid.IntRange(0, 3).Draw(t, "former leader") == 0 {
		c = w.all[rapid.IntRange(0, len(w.all)-2).Draw(t, "which")]
	}
	if len(c.streams) == 0 {
		c.connect(h)
	}
	s := c.streams[max(0, len(c.streams)-1-rapid.IntRange(0, 2).Draw(t, "stream"))]
	switch next {
	case stepNews:
		if rapid.Bool().Draw(t, "attempt") {
			h.attempt++
		} else {
			h.generation++
		}
	case stepBoot:
		h.boot += "+"
	case stepConnect:
		if rapid.Bool().Draw(t, "relay") {
			c.connect(w.hosts...)
		} else {
			c.connect(h)
		}
	case stepSend:
		h = s.of[h.number%len(s.of)]
		if before := s.sent[h.number]; before == nil || before.Boot == h.boot { // an agent that starts begins another stream
			s.send(t, h)
		}
	case stepArrive:
		if len(s.up) == 0 || !s.open {
			return
		}
		i := 0
		if rapid.IntRange(0, 3).Draw(t, "swapped") == 0 {
			i = rapid.IntRange(0, len(s.up)-1).Draw(t, "message")
		}
		c.arrive(t, s, s.up[i])
		if rapid.IntRange(0, 3).Draw(t, "doubled") > 0 {
			s.up = append(s.up[:i], s.up[i+1:]...)
		}
	case stepLose:
		s.up = s.up[min(1, len(s.up)):]
	case stepForge:
		if h = s.of[len(s.of)-1]; s.open && s.behind(h) {
			c.arrive(t, s, s.forge(t, h))
		}
	case stepReplay:
		c.replay(t, s)
	case stepAnswer:
		c.answer(t, s, rapid.IntRange(0, 3).Draw(t, "lost") == 0)
	case stepCut:
		if s.open {
			s.open = false
			c.table.closed(s.session)
		}
	case stepWrite:
		h.writing = new(h.report())
	case stepWritten:
		w.written(t, h)
	case stepTakeOver:
		if len(w.all) < 3 {
			w.takeOver()
		}
	case stepLook:
		c.look(t, w)
	}
}

// written ends a write to the store.
func (w *model) written(t *rapid.T, h *modelHost) {
	if h.writing == nil {
		return
	}
	data, err := store.Encode(h.writing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Put(context.Background(), store.HostKey("a", h.number), data, store.Any); err != nil {
		t.Fatal(err)
	}
	h.writing = nil
}

// settle has hosts write while they may be connected, and all streams end: then what is written
// is seen, and afterwards what comes by stream alone.
func (w *model) settle(t *rapid.T) {
	c := w.leader()
	w.now = w.now.Add(time.Minute) // the store is listed even if all are live
	for _, h := range w.hosts {
		h.attempt++
		h.writing = new(h.report())
		w.written(t, h)
	}
	c.look(t, w)
	for _, s := range c.streams {
		if s.open {
			c.table.closed(s.session)
		}
	}
	w.settled(t, c.look(t, w))
	for _, h := range w.hosts {
		s := c.connect(w.relayOf(h)...)
		s.send(t, h)
		h.attempt++
		s.send(t, h)
		for _, m := range s.up {
			c.arrive(t, s, m)
		}
	}
	w.settled(t, c.look(t, w))
}

// relayOf is a stream by which a host speaks at last: its own, or that of another which
// relays.
func (w *model) relayOf(h *modelHost) []*modelHost {
	if h.number == 0 {
		return []*modelHost{h}
	}
	return []*modelHost{w.hosts[0], h}
}

// settled compares what is seen with what hosts reported last.
func (w *model) settled(t *rapid.T, seen map[int]modelNews) {
	for _, h := range w.hosts {
		if got, ok := seen[h.number]; !ok || got != h.modelNews {
			t.Fatalf("host %d is seen as %+v, want %+v", h.number, got, h.modelNews)
		}
	}
}
