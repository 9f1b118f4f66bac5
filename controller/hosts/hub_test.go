package hosts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// place serves a hub on loopback, to callers that are host 0 of slice a.
type place struct {
	hub     *Hub
	table   *Table
	wake    chan struct{}
	address string
	server  *grpc.Server
	away    atomic.Bool // the key of the next token cannot be looked up
}

// called is a stream with a caller, as the API's server makes them.
type called struct {
	grpc.ServerStream
	ctx context.Context
}

func (c called) Context() context.Context { return c.ctx }

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{wake: make(chan struct{}, 1)}
	p.hub = New(slog.New(slog.DiscardHandler), func(_ context.Context, text string) (token.Claims, error) {
		c := token.Claims{Subject: token.SubjectHost, Signer: token.ID{Slice: "a"}}
		if p.away.CompareAndSwap(true, false) {
			return c, errors.New("the store is away")
		}
		if _, err := fmt.Sscanf(text, "a/%d", &c.Signer.Host); err != nil {
			return c, token.ErrMalformed
		}
		return c, nil
	})
	p.table = p.hub.Lead(p.wake)
	p.serve(t, "127.0.0.1:0")
	return p
}

func (p *place) serve(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if p.address == "" { // else it is back where clients look for it
		p.address = l.Addr().String()
	}
	p.server = grpc.NewServer(grpc.StreamInterceptor(func(service any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		return handle(service, called{s, caller.With(s.Context(), caller.Caller{Kind: caller.Host, Slice: "a"})})
	}))
	clusterapi.RegisterHostsServer(p.server, p.hub)
	go func() { _ = p.server.Serve(l) }()
	t.Cleanup(p.server.Stop)
}

// client is one that runs until the test ends.
func (p *place) client(t *testing.T) *hostlink.Client {
	t.Helper()
	c := hostlink.NewClient(hostlink.Config{
		Log: slog.New(slog.DiscardHandler),
		Dial: func(context.Context) (hostlink.Conn, error) {
			return grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return c
}

// box is a mailbox that keeps what comes.
type box struct {
	mu     sync.Mutex
	object state.Generation
	came   chan state.Generation
	data   map[state.Generation]string
}

func newBox() *box {
	return &box{came: make(chan state.Generation, 100), data: map[state.Generation]string{}}
}

func (b *box) known() state.Generation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.object
}

func (b *box) push(object state.Generation, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.object = max(b.object, object)
	b.data[object] = string(data)
	b.came <- object
}

// take looks until a host of slice a is as wanted.
func (p *place) take(t *testing.T, seen map[int]apply.LiveHost, wanted func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for monitored := time.Duration(0); ; monitored += time.Millisecond {
		for _, c := range p.table.Take(monitored) {
			if c.Report == nil {
				c.Report = seen[c.Host].Report
			}
			seen[c.Host] = c
		}
		if wanted() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("hosts are seen as %+v", seen)
		}
		time.Sleep(time.Millisecond) // what is awaited is another process's, as a rule
	}
}

func report(host int, seq uint64, task schema.TaskState) state.HostReport {
	r := state.HostReport{Slice: "a", Host: host, Boot: "boot", Seq: seq, Address: "10.0.0.1", SigningKey: []byte{1, 2}}
	if task != "" {
		r.Task = &state.TaskReport{State: task, Attempt: 1}
	}
	return r
}

// Hosts of one stream report, are sent assignments, and are known again after the controller
// went away and came back.
func TestHostsReportByOneStream(t *testing.T) {
	p := newPlace(t)
	c := p.client(t)
	first, second := newBox(), newBox()
	own := c.Host(hostlink.HostConfig{Slice: "a", Host: 0, Assignment: first.known, Assigned: first.push})
	other := c.Host(hostlink.HostConfig{
		Slice: "a", Host: 1, Assignment: second.known, Assigned: second.push, Token: func() (string, error) { return "a/1", nil },
	})
	own.Report(report(0, 10, schema.TaskRunning))
	other.Report(report(1, 20, ""))
	seen := map[int]apply.LiveHost{}
	p.take(t, seen, func() bool {
		return seen[0].Live && seen[1].Live && seen[0].Report != nil && seen[0].Report.Task.State == schema.TaskRunning && own.Live() && other.Live()
	})
	if got := seen[0].Report; got.Boot != "boot" || got.Address != "10.0.0.1" || got.Seq != 10 {
		t.Errorf("host 0 reported %+v", got)
	}
	<-p.wake // for the first reports

	own.Report(report(0, 11, schema.TaskFailed))
	select {
	case <-p.wake:
	case <-time.After(10 * time.Second):
		t.Error("a task's end does not wake the loop")
	}
	p.take(t, seen, func() bool { return seen[0].Report.Seq == 11 })
	if got := seen[0].Report.Task.State; got != schema.TaskFailed || seen[0].Report.Address != "10.0.0.1" {
		t.Errorf("host 0 reported %+v", seen[0].Report)
	}

	p.table.Assigned("a", 7, []byte("seven"))
	p.table.Assigned("a", 6, []byte("six")) // older
	for host, b := range []*box{first, second} {
		if got := <-b.came; got != 7 || b.data[7] != "seven" {
			t.Errorf("host %d was sent assignment %d %q, want 7", host, got, b.data[got])
		}
	}

	p.server.Stop()
	p.take(t, seen, func() bool { return !seen[0].Live && !seen[1].Live })
	p.table = p.hub.Lead(p.wake)
	p.table.Assigned("a", 8, nil) // as the loop finds it in the store
	p.serve(t, p.address)
	clear(seen)
	p.take(t, seen, func() bool { return seen[0].Live && seen[1].Live && seen[0].Report != nil && seen[1].Report != nil })
	if got := seen[0].Report; got.Seq != 11 || got.Task.State != schema.TaskFailed {
		t.Errorf("after the controller came back host 0 is known by %+v", got)
	}
	for host, b := range []*box{first, second} {
		if got := <-b.came; got != 8 || b.data[8] != "" {
			t.Errorf("host %d was sent assignment %d %q, want 8 to be read", host, got, b.data[got])
		}
	}
}

// A host whose token is not its own is served by nothing but the store; the others of its
// stream are.
func TestHostOfAnotherTokenIsRejected(t *testing.T) {
	p := newPlace(t)
	c := p.client(t)
	b := newBox()
	own := c.Host(hostlink.HostConfig{Slice: "a", Host: 0, Assignment: b.known, Assigned: b.push})
	forged := c.Host(hostlink.HostConfig{Slice: "a", Host: 2, Assignment: b.known, Assigned: b.push, Token: func() (string, error) { return "a/1", nil }})
	unnamed := c.Host(hostlink.HostConfig{Slice: "a", Host: 3, Assignment: b.known, Assigned: b.push})
	forged.Report(report(2, 1, ""))
	unnamed.Report(report(3, 1, ""))
	own.Report(report(0, 1, ""))
	seen := map[int]apply.LiveHost{}
	p.take(t, seen, func() bool { return seen[0].Live && own.Live() })
	if len(seen) != 1 || forged.Live() || unnamed.Live() {
		t.Errorf("hosts are seen as %+v, want host 0 alone", seen)
	}
}

// That the key of a host's token cannot be looked up now is no verdict on the host: its stream
// ends, and the next one serves it.
func TestTokenThatCannotBeCheckedNowRejectsNoHost(t *testing.T) {
	p := newPlace(t)
	p.away.Store(true)
	c := p.client(t)
	b := newBox()
	relayed := c.Host(hostlink.HostConfig{Slice: "a", Host: 1, Assignment: b.known, Assigned: b.push, Token: func() (string, error) { return "a/1", nil }})
	relayed.Report(report(1, 1, ""))
	p.take(t, map[int]apply.LiveHost{}, relayed.Live)
	if p.away.Load() {
		t.Error("the token was not checked")
	}
}

// The first hosts of many are told their pace again when more have come: a few would write to the
// store more often than many may.
func TestPaceFollowsTheNumberOfHosts(t *testing.T) {
	table := newTable(make(chan struct{}, 1))
	s := &session{table: table, wake: make(chan struct{}, 1), hosts: map[uint32]speaker{}, out: map[uint32]*outgoing{}}
	say := func(number uint32, seq uint64) *clusterapi.HostWelcome {
		t.Helper()
		clear(s.out)
		if seq == 1 && !table.hello(s, number, &clusterapi.HostHello{Slice: fmt.Sprint("s", number), Boot: "b"}) {
			t.Fatalf("host %d may not speak", number)
		}
		table.report(s, number, hostlink.Whole(&state.HostReport{Slice: fmt.Sprint("s", number), Boot: "b", Seq: seq}))
		if o := s.out[number]; o == nil || o.received != seq {
			t.Fatalf("report %d of host %d is not acknowledged", seq, number)
		}
		return s.out[number].welcome
	}
	first := say(1, 1)
	if first == nil || first.GetStoreHeartbeat() > 10 {
		t.Errorf("the only host is told %v, want as often as it likes", first)
	}
	for n := uint32(2); n <= 3000; n++ {
		say(n, 1)
	}
	if again := say(1, 2); again.GetStoreHeartbeat() != 2000 {
		t.Errorf("among 3,000 hosts the first one is told %v, want 2 s between two writes", again)
	}
	if again := say(1, 3); again != nil {
		t.Errorf("it is told its pace with each report: %v", again)
	}
	if last := say(3000, 2); last != nil {
		t.Errorf("the last one is told its pace anew: %v", last)
	}
}

// An assignment that is written while a host goes from one stream to another reaches it by the
// new one, whichever the host was heard by last.
func TestAssignedBetweenStreams(t *testing.T) {
	for name, heard := range map[string]bool{"a host that comes": false, "a host of another stream": true} {
		table := newTable(make(chan struct{}, 1))
		begin := func() *session {
			s := &session{table: table, wake: make(chan struct{}, 1), hosts: map[uint32]speaker{}, out: map[uint32]*outgoing{}}
			table.opened(s)
			return s
		}
		speak := func(s *session, seq uint64) {
			table.report(s, 1, hostlink.Whole(&state.HostReport{Slice: "a", Seq: seq}))
		}
		before, s := begin(), begin()
		hello := &clusterapi.HostHello{Slice: "a", Assignment: 5}
		if heard {
			table.hello(before, 1, hello)
			speak(before, 1)
		}
		table.hello(s, 1, hello)
		table.Assigned("a", 6, []byte("{}"))
		speak(s, 2)
		sent := table.outgoing(s).GetMessages()
		if len(sent) != 1 || sent[0].GetAssignment().GetObject() != 6 {
			t.Errorf("%s is sent %v, want assignment 6", name, sent)
		}
		speak(s, 3)
		if sent := table.outgoing(s).GetMessages(); len(sent) != 1 || sent[0].GetAssignment() != nil {
			t.Errorf("%s is sent %v, want the assignment once", name, sent)
		}
	}
}
