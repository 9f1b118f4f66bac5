package scale

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/token"
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
	link   *hostlink.Host
	report state.HostReport
	object state.Generation // of the assignment
}

// putter writes an object, whatever is there.
type putter func(ctx context.Context, key string, data []byte) (store.Generation, error)

func newFleet(s store.Store, put putter) (*fleet, error) {
	public, private, err := ed25519.GenerateKey(nil)
	return &fleet{store: s, put: put, public: public, private: private}, err
}

// add makes the hosts of a slice, which report to the store.
func (f *fleet) add(spec schema.SliceSpec) *slice {
	s := &slice{fleet: f, spec: spec, decided: make(chan time.Time, 1)}
	for n := range spec.Hosts {
		s.hosts = append(s.hosts, &host{report: state.HostReport{
			Slice: spec.Name, Host: n, Boot: "b", Seq: 1, Address: "127.0.0.1", CoordinatorPort: 1, MegascalePort: 2, SigningKey: f.public,
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
	s.mu.Lock()
	data, err := json.Marshal(s.hosts[n].report)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = put(ctx, store.HostKey(s.spec.Name, n), data)
	return err
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

// mint makes the token of a host.
func (s *slice) mint(n int, now time.Time) (string, error) {
	signer, err := token.NewSigner(s.fleet.private, s.fleet.stack, token.ID{Role: token.RoleHost, Slice: s.spec.Name, Host: n})
	if err != nil {
		return "", err
	}
	return signer.Mint(token.Claims{Subject: token.SubjectHost, Expires: now.Add(5 * time.Minute)})
}

// leader is a connection that does not wait for a controller.
type leader struct{ *dial.Following }

// NewStream begins a stream if a controller leads.
func (l leader) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.Following.NewStream(dial.NoWait(ctx), desc, method, opts...)
}

// connect begins to keep the stream of a slice and its heartbeats, until ctx ends.
func (s *slice) connect(ctx context.Context) {
	c := hostlink.NewClient(hostlink.Config{Log: slog.New(slog.DiscardHandler), Dial: func(context.Context) (hostlink.Conn, error) {
		return leader{dial.Follow(dial.FollowConfig{
			Store: s.fleet.store, Patience: 5 * time.Second, Recheck: time.Hour,
			Token: func(_ context.Context, now time.Time) (string, error) { return s.mint(0, now) },
		})}, nil
	}})
	for n, h := range s.hosts {
		cfg := hostlink.HostConfig{Slice: s.spec.Name, Host: n,
			Assignment: func() state.Generation { s.mu.Lock(); defer s.mu.Unlock(); return h.object },
			Assigned: func(object state.Generation, data []byte) {
				go s.assigned(ctx, n, object, data)
			},
		}
		if n > 0 {
			cfg.Token = func() (string, error) { return s.mint(n, time.Now()) }
		}
		h.link = c.Host(cfg)
		go s.beat(ctx, n)
	}
	go func() {
		sleep.For(ctx, rand.N(min(connecting, time.Duration(len(s.fleet.slices))*10*time.Millisecond)))
		c.Run(ctx)
	}()
}

// connecting is the time over which streams begin at first, as those of hosts do that have
// tried for long.
const connecting = 8 * time.Second

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
	written := time.Now().Add(-rand.N(signOfLife))
	sleep.For(ctx, rand.N(hostlink.HeartbeatDefault))
	for {
		s.mu.Lock()
		h.report.Seq++
		r := h.report
		s.mu.Unlock()
		h.link.Report(r)
		if time.Since(written) > signOfLife || !h.link.Live() && time.Since(written) > hostlink.HeartbeatDefault {
			written = time.Now()
			_ = s.writeHost(ctx, s.fleet.put, n)
		}
		if !sleep.For(ctx, h.link.Heartbeat()) {
			return
		}
	}
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
