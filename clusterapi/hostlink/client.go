package hostlink

import (
	"context"
	"errors"
	"hash/crc32"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi/sealed"
	"github.com/fray-ml/fray/state"
)

// Times of a stream.
const (
	// HeartbeatDefault is the time between two reports of a host to which nothing happens,
	// until the controller states another.
	HeartbeatDefault = 4 * time.Second
	// ackPatience is how long after a report was due its acknowledgement may come before the host
	// reports to the store as well. With the heartbeat it is less than the ten seconds within
	// which the store's way goes on.
	ackPatience = 3 * time.Second
	// hungPatience is how long an acknowledgement may take before the stream ends, since another
	// controller leads, maybe: less than a lease lives. A controller that is late is not helped by
	// hosts that begin anew, and by those for which they relay.
	hungPatience = 10 * time.Second
	// longestPatience is the same for the first acknowledgement of a stream, which is late where
	// many hosts come at a time: hungPatience at first, and twice as long after each stream in
	// which nothing is answered.
	longestPatience = 40 * time.Second
	watchInterval   = 2 * time.Second
	// Pauses before a connection is tried again.
	firstPause = 500 * time.Millisecond
	lastPause  = 8 * time.Second
)

// Conn is a connection to the controller that leads, or to a relay.
type Conn interface {
	grpc.ClientConnInterface
	Close() error
}

// Config is how a Client connects.
type Config struct {
	// Dial returns a connection that follows the controller that leads, or why there is none. It
	// is used for one stream after another while controllers are not available.
	Dial func(ctx context.Context) (Conn, error)
	// Relays are hosts through which the client may speak; nil: it speaks for itself.
	Relays Relays
	// Authorities is called with which authorities certify actors, as an object of the store
	// has it. It must not block; nil: it is not called.
	Authorities func(object state.Generation, data []byte)
	Log         *slog.Logger
}

// Client keeps one stream to the controller that leads, for all hosts of a process. Its
// methods may be called concurrently.
type Client struct {
	cfg   Config
	wake  chan struct{}
	next  *path     // begun for the next stream; Run's alone
	conn  Conn      // to the controller, kept for the next stream; Run's alone; nil: none is
	wait  relayWait // Run's alone
	pause pause

	mu        sync.Mutex
	hosts     map[uint32]*Host
	last      uint32           // number of a host
	dirty     map[uint32]*Host // those with something to send
	gone      []uint32         // those that left and were known to it
	answered  bool             // the controller has sent something in this stream
	patience  time.Duration    // for the first acknowledgement of a stream
	leader    []byte           // to which messages of this stream are sealed; nil: they are not
	up        *upstream        // by which other hosts speak; nil: there is none now
	upChanged chan struct{}    // closed when up changes
	news      chan struct{}    // closed while hosts have news
	heartbeat time.Duration    // as the controller states it
	spread    time.Duration    // the same
	stored    time.Duration    // between reports to the store without a stream, the same; 0: not stated
}

// NewClient returns a client without hosts; Run connects it.
func NewClient(cfg Config) *Client {
	return &Client{cfg: cfg, wake: make(chan struct{}, 1), pause: newPause(), upChanged: make(chan struct{}), news: make(chan struct{}), hosts: map[uint32]*Host{}, dirty: map[uint32]*Host{}, heartbeat: HeartbeatDefault, patience: hungPatience}
}

// HostConfig is a host that a client speaks for.
type HostConfig struct {
	Slice string
	Host  int
	// Token makes the host's own token, without waiting for anything; nil: the one of the
	// connection is its own.
	Token func() (string, error)
	// Relayed makes the host's token for a relay, which vouches for a key; nil: the host is
	// left to the store where the client speaks through a relay.
	Relayed func(key string) (string, error)
	// Assignment is the generation of the object in the store of the assignment that the
	// host has.
	Assignment func() state.Generation
	// Assigned is called with a version of the assignment that is in the store, without
	// content where the host is to read it there. It must not block.
	Assigned func(object state.Generation, data []byte)
}

// Host is one host of a client.
type Host struct {
	cfg    HostConfig
	client *Client
	number uint32
	phase  uint32 // of the slice's heartbeats

	// What follows belongs to the client's mutex.
	report   *state.HostReport // the newest; nil: none yet
	sent     *state.HostReport // the last in this stream with more than a number; nil: none
	seq      uint64            // sent last in this stream
	sentAt   time.Time         // then
	received uint64            // the highest number that was acknowledged in this stream
	awaiting time.Time         // since when nothing was acknowledged that was sent; zero: all was
	acked    time.Time         // when the newest report was sent that was acknowledged
	news     uint64            // the number of the newest report that must not get lost; 0: none has come
	known    uint64            // the highest number that was ever acknowledged
	rejected bool              // in this stream
	channel  *sealed.Channel   // to the controller through a relay; nil: not begun
	// rejectedAt is when it was rejected in clear, which is no verdict; zero: it was not.
	rejectedAt time.Time
}

// Host adds a host, which Report makes known to the controller.
func (c *Client) Host(cfg HostConfig) *Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	h := &Host{cfg: cfg, client: c, number: c.last, phase: crc32.ChecksumIEEE([]byte(cfg.Slice))}
	c.hosts[h.number] = h
	return h
}

// Close takes a host out of the stream.
func (h *Host) Close() {
	c := h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.hosts, h.number)
	delete(c.dirty, h.number)
	c.noteNews()
	if h.sent != nil {
		c.gone = append(c.gone, h.number)
	}
	c.signal()
}

// Report hands a report over, to be sent at once if there is a stream. Of several that
// wait only the newest is sent. One with a number that is not higher is left out.
func (h *Host) Report(r state.HostReport) {
	c := h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.report != nil && r.Seq <= h.report.Seq {
		return
	}
	if h.report != nil && Durable(h.report, &r) {
		h.news = r.Seq
		c.noteNews()
	}
	h.report = &r
	h.retry()
	c.dirty[h.number] = h
	c.signal()
}

// Live reports whether the controller has acknowledged a report that is hardly older than
// a heartbeat: then it knows what it has to know of the host.
func (h *Host) Live() bool {
	c := h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	return !h.acked.IsZero() && time.Since(h.acked) < c.heartbeat+ackPatience
}

// StoreHeartbeat is the time between two reports to the store to which nothing happens, while
// the host has no stream; 0: no controller has stated it.
func (h *Host) StoreHeartbeat() time.Duration {
	c := h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored
}

// Heartbeat is the time between two reports to which nothing happens.
func (h *Host) Heartbeat() time.Duration {
	c := h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heartbeat
}

func (c *Client) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Beat is the time until the next report of a host to which nothing happens. Hosts whose
// clocks agree report at the same moments, so that a relay passes their reports on in one
// message; slices are spread.
func (h *Host) Beat() time.Duration {
	heartbeat := h.Heartbeat()
	return heartbeat - time.Duration((time.Now().UnixNano()+int64(h.phase))%int64(heartbeat))
}

// Run keeps a stream until ctx ends.
func (c *Client) Run(ctx context.Context) {
	pause, failed := firstPause, false
	defer c.hangUp()
	for ctx.Err() == nil {
		if !c.ready(ctx) {
			return
		}
		answered, err := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if status.Code(err) != codes.Unavailable { // it hangs, maybe, and another controller leads
			c.hangUp()
		}
		if c.next != nil {
			continue
		}
		if !failed || answered {
			c.cfg.Log.Debug("no stream to the controller; reports go to the store", "error", err)
		}
		failed = !answered
		if answered {
			c.wait = relayWait{}
		}
		wait, least, pressed := pause, hurriedPause, pause
		switch {
		case answered:
			c.mu.Lock()
			wait, pause = max(firstPause, c.spread), firstPause
			c.mu.Unlock()
			least = 2 * wait // hosts of other relays have lost their streams as well, maybe
			pressed = min(wait, newsPause)
		case errors.Is(err, errWaits):
			wait = firstPause // the relay has taken its time
		default:
			pause = min(2*pause, lastPause)
		}
		if !c.pause.wait(ctx, wait, least, pressed, c.whenNews()) {
			return
		}
	}
}

// hangUp closes the connection to the controller, if there is one.
func (c *Client) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is under way any more
		c.conn = nil
	}
}

// whenNews returns what is closed while a host has news: a report that must not get lost and was not
// acknowledged.
func (c *Client) whenNews() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news
}

// noteNews takes note of whether a host has news. The caller holds the mutex.
func (c *Client) noteNews() {
	has := false
	for _, h := range c.hosts {
		has = has || h.news > h.known && !h.rejected
	}
	if isClosed(c.news) == has {
		return
	}
	if has {
		close(c.news)
	} else {
		c.news = make(chan struct{})
	}
}

// ready waits until a host has reported.
func (c *Client) ready(ctx context.Context) bool {
	for {
		c.mu.Lock()
		waiting := len(c.dirty) > 0
		for _, h := range c.hosts {
			waiting = waiting || h.report != nil
		}
		c.mu.Unlock()
		if waiting {
			return true
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return false
		}
	}
}

var errUnacknowledged = errors.New("the controller acknowledges nothing")

var errBetter = errors.New("the stream goes through a relay from now on")

// connect serves one stream to its end. It reports whether the controller took part.
func (c *Client) connect(ctx context.Context) (answered bool, err error) {
	p := c.next
	if c.next = nil; p == nil {
		if p, err = c.open(ctx); err != nil {
			return false, err
		}
	}
	served, better := c.begin(p), make(chan *path)
	var workers sync.WaitGroup
	if p.route != nil {
		c.hangUp()
	} else if c.cfg.Relays != nil && c.cfg.Relays.Count() > 0 {
		workers.Go(func() { c.improve(p.ctx, ctx, better) })
	}
	workers.Go(func() { p.cancel(c.receive(p)) })
	err = c.sendAll(p, served, better)
	p.close(err)
	workers.Wait() // what they call, they call no more
	served.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.answered:
		c.patience = hungPatience
	case errors.Is(err, errUnacknowledged):
		c.patience = min(2*c.patience, longestPatience)
	}
	c.leader = nil
	c.serve(nil)
	if p.route != nil {
		p.route.Ended(outcome(c.answered, err))
	}
	return c.answered, err
}

// begin makes all hosts begin with a hello. It returns what other hosts may speak by once the
// controller has answered.
func (c *Client) begin(p *path) *upstream {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone, c.answered, c.leader = nil, false, nil
	served := newUpstream()
	if p.route != nil {
		c.leader = p.leader
	} else {
		c.serve(served)
	}
	for n, h := range c.hosts {
		h.sent, h.seq, h.received, h.awaiting, h.rejected, h.channel = nil, 0, 0, time.Time{}, false, nil
		h.rejectedAt = time.Time{}
		if h.report != nil {
			c.dirty[n] = h
		}
	}
	c.noteNews()
	c.signal()
	return served
}

// serve has other hosts speak by a stream; nil: by none.
func (c *Client) serve(up *upstream) {
	c.up = up
	close(c.upChanged)
	c.upChanged = make(chan struct{})
}
