package scale

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/agent/live"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// signOfLife is how often a host with a stream writes its report to the store all the same.
const signOfLife = time.Minute

// fleet is all simulated hosts.
type fleet struct {
	store   store.Store
	put     putter
	stack   string
	public  ed25519.PublicKey  // all hosts have the same key
	private ed25519.PrivateKey // likewise
	slices  []*slice
	relays  map[string]*hostlink.Relay // of hosts, by their addresses
	boxes   map[string]box             // of hosts, by the keys of their reports
	relayed atomic.Int64               // hosts that hold streams to them
}

// slice is the hosts of one slice; its first speaks for all of them.
type slice struct {
	fleet *fleet
	spec  schema.SliceSpec

	mu      sync.Mutex
	hosts   []*host
	decided chan time.Time // when an assignment came that follows a death
	waiting int64          // its generation is above this one; 0: nothing is waited for
}

// host is a simulated host. Its fields belong to the slice's mutex.
type host struct {
	open   *live.Link
	link   *hostlink.Host
	report state.HostReport
	object state.Generation // of the assignment
}

// putter writes an object, whatever is there.
type putter func(ctx context.Context, key string, data []byte) (store.Generation, error)

func newFleet(s store.Store, put putter) (*fleet, error) {
	public, private, err := ed25519.GenerateKey(nil)
	return &fleet{store: s, put: put, public: public, private: private, relays: map[string]*hostlink.Relay{}, boxes: map[string]box{}}, err
}

// add makes the hosts of a slice, which report to the store.
func (f *fleet) add(spec schema.SliceSpec) *slice {
	s := &slice{fleet: f, spec: spec, decided: make(chan time.Time, 1)}
	for n := range spec.Hosts {
		s.hosts = append(s.hosts, &host{report: state.HostReport{
			Slice: spec.Name, Host: n, Boot: "b", Seq: 1, Address: "127.0.0.1", CoordinatorPort: 1, MegascalePort: 2, SigningKey: f.public,
			API: fmt.Sprintf("%s/%d", spec.Name, n), Fingerprint: strings.Repeat("ab", sha256.Size),
		}})
	}
	return s
}

// write writes the reports of a slice's hosts.
func (s *slice) write(ctx context.Context, put putter) error {
	for n := range s.hosts {
		if err := s.writeHost(ctx, put, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *slice) writeHost(ctx context.Context, put putter, n int) error {
	data, err := s.encoded(n)
	if err != nil {
		return err
	}
	_, err = put(ctx, store.HostKey(s.spec.Name, n), data)
	return err
}

// encoded is a host's report as the store has it.
func (s *slice) encoded(n int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(s.hosts[n].report)
}

// report is a host's report by its key.
func (f *fleet) report(key string) (data []byte, known bool) {
	b, known := f.boxes[key]
	if !known {
		return nil, false
	}
	data, err := b.slice.encoded(b.host)
	return data, err == nil
}

// obey has a host do at once what an assignment says. It reports whether that was news.
func (s *slice) obey(n int, object state.Generation, data []byte) bool {
	var a state.Assignment
	if json.Unmarshal(data, &a) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[n]
	h.object = object
	if a.Epoch == h.report.Epoch && a.Generation <= h.report.Generation {
		return false
	}
	if s.waiting > 0 && a.Generation > s.waiting {
		s.waiting = 0
		s.decided <- time.Now()
	}
	h.report.Seq++
	news := a.Generation != h.report.Generation
	h.report.Epoch, h.report.Generation = a.Epoch, a.Generation
	if a.Run != nil && news {
		h.report.Task = &state.TaskReport{
			Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, Task: n, State: schema.TaskRunning, Started: true,
			StartedAt: time.Now(),
		}
	}
	return true
}

// finish has the task of a host end well.
func (s *slice) finish(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code, task := 0, *s.hosts[n].report.Task
	task.State, task.ExitCode, task.EndedAt = schema.TaskSucceeded, &code, time.Now()
	s.hosts[n].report.Task = &task
}

// die has the task of a host fail.
func (s *slice) die(ctx context.Context, n int) {
	s.mu.Lock()
	h := s.hosts[n]
	code, task := 1, *h.report.Task
	task.State, task.ExitCode, task.EndedAt, task.Reason = schema.TaskFailed, &code, time.Now(), "simulated"
	h.report.Task = &task
	h.report.Seq++
	s.waiting = h.report.Generation
	r := h.report
	s.mu.Unlock()
	h.link.Report(r)
	go func() { _ = s.writeHost(ctx, s.fleet.put, n) }()
}

// box is what a simulated host has of its assignment.
type box struct {
	ctx   context.Context // of the fleet
	slice *slice
	host  int
}

var _ live.Mailbox = box{}

// Known is the generation of the assignment that the host has.
func (b box) Known() store.Generation {
	b.slice.mu.Lock()
	defer b.slice.mu.Unlock()
	return b.slice.hosts[b.host].object
}

// Push has the host obey.
func (b box) Push(object store.Generation, data []byte) {
	go b.slice.assigned(b.ctx, b.host, object, data)
}

// connect connects to another host within this process: what that costs is no cost of the
// controller's, to which hosts connect as agents do.
func (f *fleet) connect(address, fingerprint string, token dial.Token) (dial.Conn, error) {
	if to := f.relays[address]; to != nil {
		return within{to, &f.relayed}, nil
	}
	return dial.Connect(address, fingerprint, token)
}

// link makes the links of a slice's hosts, which are those of agents.
func (s *slice) link(ctx context.Context) {
	for n, h := range s.hosts {
		h.open = live.Open(live.Config{
			Store: s.fleet.store, Identity: live.Identity{Slice: s.spec.Name, Host: n, Key: s.fleet.private},
			Stack: func() string { return s.fleet.stack }, Connect: s.fleet.connect, Log: slog.New(slog.DiscardHandler),
		})
		own := box{ctx, s, n}
		h.link = h.open.Host(live.Identity{Slice: s.spec.Name, Host: n, Key: s.fleet.private}, own)
		s.fleet.boxes[store.HostKey(s.spec.Name, n)] = own
		s.fleet.relays[h.report.API] = h.open.Relay()
	}
}

// connect begins to keep the links of a slice and its heartbeats, until ctx ends.
func (s *slice) connect(ctx context.Context) {
	at := rand.N(time.Duration(len(s.fleet.slices)) * connecting)
	for n, h := range s.hosts {
		go func() {
			if sleep.For(ctx, at) {
				go s.beat(ctx, n)
				h.open.Run(ctx)
			}
		}()
	}
}

// connecting is the time in which the streams of a slice begin at first. How many come at a time
// after a takeover is up to them and the controller.
const connecting = 8 * time.Millisecond

// assigned has a host obey and report.
func (s *slice) assigned(ctx context.Context, n int, object state.Generation, data []byte) {
	if data == nil {
		o, err := s.fleet.store.Get(ctx, store.AssignKey(s.spec.Name))
		if err != nil {
			return
		}
		object, data = o.Generation, o.Data
	}
	if !s.obey(n, object, data) {
		return
	}
	s.mu.Lock()
	r := s.hosts[n].report
	s.mu.Unlock()
	s.hosts[n].link.Report(r)
	_ = s.writeHost(ctx, s.fleet.put, n)
}

// beat reports that a host lives: by stream at its pace, and to the store now and then.
func (s *slice) beat(ctx context.Context, n int) {
	h := s.hosts[n]
	life := signs{written: time.Now().Add(-rand.N(signOfLife)), cutOff: time.Now()}
	for {
		s.mu.Lock()
		h.report.Seq++
		r := h.report
		s.mu.Unlock()
		h.link.Report(r)
		if life.due(time.Now(), h.link) {
			_ = s.writeHost(ctx, s.fleet.put, n)
		}
		if !sleep.For(ctx, h.link.Beat()) {
			return
		}
	}
}

// signs are the writes of a host to the store, paced as those of an agent.
type signs struct {
	written time.Time
	cutOff  time.Time // since when it has no stream; zero: it has one
	firstIn time.Duration
}

// due reports whether the host is to write, and takes that it does.
func (s *signs) due(now time.Time, link *hostlink.Host) bool {
	pace := max(hostlink.HeartbeatDefault, link.StoreHeartbeat())
	switch {
	case link.Live():
		pace, s.cutOff, s.firstIn = signOfLife, time.Time{}, 0
	case s.cutOff.IsZero():
		s.cutOff, s.firstIn = now, rand.N(pace)
	}
	if now.Sub(s.written) < pace || now.Sub(s.cutOff) < s.firstIn {
		return false
	}
	s.written = now
	return true
}

// live is how many hosts a controller has acknowledged lately.
func (f *fleet) live() (n int) {
	for _, s := range f.slices {
		for _, h := range s.hosts {
			if h.link.Live() {
				n++
			}
		}
	}
	return n
}
