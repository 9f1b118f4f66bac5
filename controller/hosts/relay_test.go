package hosts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// wire is a network without a machine: addresses are those of servers that listen in memory.
type wire struct {
	t       *testing.T
	mu      sync.Mutex
	at      map[string]*bufconn.Listener
	servers map[string]*grpc.Server
}

// serve serves hosts at an address, until stop.
func (w *wire) serve(address string, hosts clusterapi.HostsServer, opts ...grpc.ServerOption) {
	l, s := bufconn.Listen(64<<10), grpc.NewServer(opts...)
	clusterapi.RegisterHostsServer(s, hosts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[address], w.servers[address] = l, s
	go func() { _ = s.Serve(l) }()
}

func (w *wire) stop(address string) {
	w.mu.Lock()
	s := w.servers[address]
	delete(w.at, address)
	delete(w.servers, address)
	w.mu.Unlock()
	s.Stop()
}

// dial is a connection to who serves at an address.
func (w *wire) dial(address string) hostlink.Conn {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			w.mu.Lock()
			l := w.at[to]
			w.mu.Unlock()
			if l == nil {
				return nil, errors.New("nothing listens there")
			}
			return l.DialContext(ctx)
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// cluster is slice a: a controller and hosts, each of which may relay at its address.
type cluster struct {
	*wire
	hub    *Hub
	table  *Table
	public []byte // of the term
	hosts  []*clusterHost
	ended  sync.WaitGroup
	came   atomic.Int64 // messages, with all that is in them
	spread bool         // hosts come back over seconds
}

// clusterHost is a host of a cluster.
type clusterHost struct {
	*hostlink.Host
	cluster     *cluster
	number      int
	box         *box
	authorities atomic.Int64 // the newest object that it was sent
	stop        context.CancelFunc
	outcomes    []hostlink.Outcome // of its routes; its client's alone while that runs
	blind       atomic.Int64       // looks for a relay, and then for the controller's key, that fail still
	seq         uint64
}

var _ hostlink.Relays = (*clusterHost)(nil)

// Count is how many hosts are before this one.
func (h *clusterHost) Count() int { return h.number }

// Route is the way through host nth, unless it has been silent.
func (h *clusterHost) Route(_ context.Context, nth int) (*hostlink.Route, error) {
	switch {
	case slices.Contains(h.outcomes, hostlink.Silent):
		return nil, nil
	case h.blind.Load()%2 == 1:
		h.blind.Add(-1)
		return nil, errBlind
	}
	return &hostlink.Route{Conn: h.cluster.dial(fmt.Sprint(nth)), Leader: h.leader, Ended: func(how hostlink.Outcome) {
		h.outcomes = append(h.outcomes, how)
	}}, nil
}

func (h *clusterHost) leader(context.Context) ([]byte, error) {
	if h.blind.Load() > 0 {
		h.blind.Add(-1)
		return nil, errBlind
	}
	return h.cluster.public, nil
}

var errBlind = errors.New("the store does not answer")

// Again is when a host without a relay looks for one.
func (h *clusterHost) Again() time.Duration { return 20 * time.Second }

// newCluster has a controller that leads, and so many hosts, of which none runs yet.
func newCluster(t *testing.T, hosts int) *cluster {
	c := &cluster{wire: &wire{t: t, at: map[string]*bufconn.Listener{}, servers: map[string]*grpc.Server{}}}
	c.hub = New(slog.New(slog.DiscardHandler), relayedToken)
	c.lead()
	for n := range hosts {
		h := &clusterHost{cluster: c, number: n, box: newBox()}
		c.hosts = append(c.hosts, h)
	}
	return c
}

// lead begins a term, in which the controller serves at an address of its own.
func (c *cluster) lead() {
	public, err := c.hub.NewKey()
	if err != nil {
		c.t.Fatal(err)
	}
	c.public, c.table = public, c.hub.Lead(make(chan struct{}, 1))
	c.wire.serve("controller", c.hub, grpc.StreamInterceptor(func(service any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		given, _ := metadata.FromIncomingContext(s.Context())
		who := caller.Caller{Kind: caller.Host, Slice: "a"}
		if _, err := fmt.Sscan(given.Get("from-host")[0], &who.Host); err != nil {
			return err
		}
		if c.spread {
			s = spreading{s}
		}
		return handle(service, called{counted{s, &c.came}, caller.With(s.Context(), who)})
	}))
}

// direct is a connection to the controller as a host.
type direct struct {
	hostlink.Conn
	host int
}

func (d direct) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return d.Conn.NewStream(metadata.AppendToOutgoingContext(ctx, "from-host", fmt.Sprint(d.host)), desc, method, opts...)
}

// run starts a host, which reports at each beat until it is killed.
func (h *clusterHost) run() {
	client := hostlink.NewClient(hostlink.Config{
		Log: slog.New(slog.DiscardHandler), Relays: h,
		Dial: func(context.Context) (hostlink.Conn, error) {
			return direct{h.cluster.dial("controller"), h.number}, nil
		},
		Authorities: func(object state.Generation, _ []byte) { h.authorities.Store(int64(object)) },
	})
	h.Host = client.Host(hostlink.HostConfig{
		Slice: "a", Host: h.number, Assignment: h.box.known, Assigned: h.box.push,
		Relayed: func(key string) (string, error) { return fmt.Sprintf("a/%d %s", h.number, key), nil },
	})
	h.cluster.wire.serve(fmt.Sprint(h.number), hostlink.NewRelay(client))
	ctx, cancel := context.WithCancel(h.cluster.t.Context())
	h.cluster.ended.Go(func() { client.Run(ctx) })
	h.report("")
	h.stop = sync.OnceFunc(func() { // as a process that is killed
		h.cluster.wire.stop(fmt.Sprint(h.number))
		cancel()
	})
}

// report reports a task's state, or a heartbeat.
func (h *clusterHost) report(task schema.TaskState) {
	h.seq++
	h.Report(report(h.number, h.seq, task))
}

// close ends what runs.
func (c *cluster) close() {
	for _, h := range c.hosts {
		if h.stop != nil {
			h.stop()
		}
	}
	if c.at["controller"] != nil {
		c.wire.stop("controller")
	}
	c.ended.Wait()
}

// beat has time pass, in which hosts report.
func (c *cluster) beat(d time.Duration) {
	for range d / time.Second {
		time.Sleep(time.Second)
		synctest.Wait()
		for _, h := range c.hosts {
			if h.stop != nil {
				h.report("")
			}
		}
		c.table.Take(time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	synctest.Wait()
}

// streams are those of the controller, by the host that holds them, with how many speak by each.
func (c *cluster) streams() map[int]int {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	all := map[int]int{}
	for s := range c.table.sessions {
		all[s.who.Host] = len(s.hosts)
	}
	return all
}

func (c *cluster) want(what string, streams map[int]int) {
	c.t.Helper()
	if got := c.streams(); fmt.Sprint(got) != fmt.Sprint(streams) {
		c.t.Errorf("%s: the streams are %v, want %v; routes did %v", what, got, streams, c.outcomes())
	}
	for _, h := range c.hosts {
		if e := c.table.hosts[key{"a", h.number}]; h.stop != nil && (!h.Live() || e == nil || e.seq+1 < h.seq) {
			c.t.Errorf("%s: host %d is live: %t, and known by %+v, where its number is %d", what, h.number, h.Live(), e, h.seq)
		}
	}
}

// The first host speaks for the others: what they report arrives, and so does what they are
// sent. When it dies the next one does, and when it is back it does again.
func TestHostsSpeakThroughTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		defer c.close()
		c.table.Authorities(5, []byte("of actors"))
		for _, h := range c.hosts {
			h.run()
		}
		c.beat(30 * time.Second)
		c.want("at first", map[int]int{0: 4})
		c.hosts[3].report(schema.TaskFailed)
		synctest.Wait()
		if got := c.table.hosts[key{"a", 3}].report; got.Task == nil || got.Task.State != schema.TaskFailed {
			t.Errorf("host 3 reported %+v, want that its task has failed at once", got)
		}
		c.table.Assigned("a", 7, []byte("seven"))
		synctest.Wait()
		for _, h := range c.hosts {
			if h.box.object != 7 || h.box.data[7] != "seven" || h.authorities.Load() != 5 {
				t.Errorf("host %d was sent assignment %d %q and authorities %d", h.number, h.box.object, h.box.data[7], h.authorities.Load())
			}
		}

		before := c.came.Load()
		c.beat(20 * time.Second) // in which each host has said something each second
		if got := c.came.Load() - before; got > 21 {
			t.Errorf("%d messages came in 20 s, want those of hosts that speak at the same moment in one", got)
		}

		c.hosts[0].stop()
		c.hosts[0].stop = nil
		c.beat(9 * time.Second)
		for _, h := range c.hosts[1:] {
			if !h.Live() {
				t.Errorf("host %d is not live 9 s after its relay died", h.number)
			}
		}
		c.beat(21 * time.Second)
		c.want("after the relay died", map[int]int{1: 3})

		c.hosts[0].run()
		c.beat(60 * time.Second)
		c.want("once it is back", map[int]int{0: 4})
	})
}

// silent takes streams and passes nothing on.
type silent struct {
	clusterapi.UnimplementedHostsServer
}

func (silent) Connect(stream clusterapi.Hosts_ConnectServer) error {
	if err := stream.SendHeader(metadata.Pairs("relay", "serves")); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// deaf does not even begin.
type deaf struct {
	clusterapi.UnimplementedHostsServer
}

func (deaf) Connect(stream clusterapi.Hosts_ConnectServer) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// Hosts whose relay is silent, or is one of an older version, speak for themselves within ten
// seconds.
func TestRelaysThatDoNotServe(t *testing.T) {
	for name, test := range map[string]struct {
		relay clusterapi.HostsServer
		want  hostlink.Outcome
		after time.Duration // it is left by then
	}{
		"silent": {silent{}, hostlink.Silent, 18 * time.Second}, "deaf": {deaf{}, hostlink.Silent, 18 * time.Second},
		"old": {clusterapi.UnimplementedHostsServer{}, hostlink.Failed, 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 2)
				defer c.close()
				c.wire.serve("0", test.relay)
				defer c.wire.stop("0")
				c.hosts[1].run()
				c.beat(test.after)
				c.want("beside a relay that is "+name, map[int]int{1: 1})
				if got := c.hosts[1].outcomes; len(got) != 1 || got[0] != test.want {
					t.Errorf("the route did %v, want %v once", got, test.want)
				}
			})
		})
	}
}

// A takeover: relays are back by the next controller, with all who speak through them.
func TestRelaysFollowTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		defer c.close()
		for _, h := range c.hosts {
			h.run()
		}
		c.beat(20 * time.Second)
		c.wire.stop("controller")
		c.beat(12 * time.Second)
		for _, h := range c.hosts {
			if h.Live() {
				t.Errorf("host %d is live without a controller", h.number)
			}
		}
		c.lead()
		c.beat(14 * time.Second)
		for _, h := range c.hosts {
			if !h.Live() {
				t.Errorf("host %d is not back after 14 s", h.number)
			}
		}
		c.beat(30 * time.Second)
		c.want("after the takeover", map[int]int{0: 3})
	})
}

func (c *cluster) outcomes() (all [][]hostlink.Outcome) {
	for _, h := range c.hosts {
		all = append(all, h.outcomes)
	}
	return all
}

// A host behind a relay is rejected unless its token is its own, is for relays alone, and
// vouches for the key that it offers.
func TestOffersOfOthersAreRejected(t *testing.T) {
	hub := New(slog.New(slog.DiscardHandler), func(_ context.Context, text string) (token.Claims, error) {
		claims := token.Claims{Signer: token.ID{Slice: "a"}, Expires: time.Now().Add(time.Minute)}
		if text == "away" {
			return claims, errors.New("the store is away")
		}
		if _, err := fmt.Sscanf(text, "%s %d %s", &claims.Subject, &claims.Signer.Host, &claims.Key); err != nil {
			return claims, token.ErrMalformed
		}
		return claims, nil
	})
	public, err := hub.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	table := hub.Lead(make(chan struct{}, 1))
	for name, test := range map[string]struct {
		token string // with the name of the offer
		want  string
	}{
		"its own":                      {"relayed 1 %s", ""},
		"another host's":               {"relayed 2 %s", othersToken},
		"a host's for the API":         {"host 1 %s", othersToken},
		"one of the call":              {"relayed 1 call", othersToken},
		"one that cannot be read":      {"?", token.ErrMalformed.Error()},
		"none":                         {"", token.ErrMalformed.Error()},
		"one whose key is not at hand": {"away", "the store is away"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{hub: hub, table: table, who: caller.Caller{Kind: caller.Host, Slice: "a"}, wake: make(chan struct{}, 1),
				hosts: map[uint32]speaker{}, out: map[uint32]*outgoing{}}
			_, offer, err := sealed.Dial(public, "a", 1)
			if err != nil {
				t.Fatal(err)
			}
			hello := &clusterapi.HostHello{Slice: "a", Host: 1, Offer: offer, Token: strings.ReplaceAll(test.token, "%s", offer.Name())}
			if err := s.receive(t.Context(), &clusterapi.HostMessage{Number: 1, Hello: hello}); err != nil {
				t.Fatal(err)
			}
			got := ""
			if o := s.out[1]; o != nil {
				got = o.rejected
			}
			if got != test.want || (s.relayed[1] != nil) != (test.want == "") {
				t.Errorf("rejected with %q, want %q", got, test.want)
			}
		})
	}
}
