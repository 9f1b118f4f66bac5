package hostlink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
)

// Times of a stream.
const (
	// HeartbeatDefault is the time between two reports of a host to which nothing happens,
	// until the controller states another.
	HeartbeatDefault = 4 * time.Second
	// ackPatience is how long after a report was due its acknowledgement may come. With
	// the heartbeat it is less than the ten seconds within which the store's way goes on.
	ackPatience   = 3 * time.Second
	watchInterval = time.Second
	// Pauses before a connection is tried again.
	firstPause = 500 * time.Millisecond
	lastPause  = 8 * time.Second
)

// Conn is a connection to the controller that leads.
type Conn interface {
	grpc.ClientConnInterface
	Close() error
}

// Config is how a Client connects.
type Config struct {
	// Dial returns a connection that follows the controller that leads, or why there is none.
	// It is used for one stream after another.
	Dial func(ctx context.Context) (Conn, error)
	// Authorities is called with which authorities certify actors, as an object of the store
	// has it. It must not block; nil: it is not called.
	Authorities func(object state.Generation, data []byte)
	Log         *slog.Logger
}

// Client keeps one stream to the controller that leads, for all hosts of a process. Its
// methods may be called concurrently.
type Client struct {
	cfg  Config
	wake chan struct{}
	conn Conn // Run's alone; nil: none

	mu        sync.Mutex
	hosts     map[uint32]*Host
	last      uint32           // number of a host
	dirty     map[uint32]*Host // those with something to send
	urgent    bool             // it is to be sent at once: not heartbeats alone
	gone      []uint32         // those that left and were known to it
	answered  bool             // the controller has sent something in this stream
	heartbeat time.Duration    // as the controller states it
	spread    time.Duration    // the same
}

// NewClient returns a client without hosts; Run connects it.
func NewClient(cfg Config) *Client {
	return &Client{cfg: cfg, wake: make(chan struct{}, 1), hosts: map[uint32]*Host{}, dirty: map[uint32]*Host{}, heartbeat: HeartbeatDefault}
}

// HostConfig is a host that a client speaks for.
type HostConfig struct {
	Slice string
	Host  int
	// Token makes the host's own token, without waiting for anything; nil: the one of the
	// connection is its own.
	Token func() (string, error)
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

	// What follows belongs to the client's mutex.
	report   *state.HostReport // the newest; nil: none yet
	sent     *state.HostReport // the last in this stream with more than a number; nil: none
	seq      uint64            // sent last in this stream
	sentAt   time.Time         // then
	received uint64            // the highest number that was acknowledged in this stream
	awaiting time.Time         // since when nothing was acknowledged that was sent; zero: all was
	acked    time.Time         // when the newest report was sent that was acknowledged
	rejected bool              // in this stream
}

// Host adds a host, which Report makes known to the controller.
func (c *Client) Host(cfg HostConfig) *Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	h := &Host{cfg: cfg, client: c, number: c.last}
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
	if h.sent != nil {
		c.gone = append(c.gone, h.number)
	}
	c.urgent = true
	c.signal()
}

// Report hands a report over, to be sent if there is a stream: at once if it says something
// new, else soon, with those of other hosts. Of several that wait only the newest is sent.
// One with a number that is not higher is left out.
func (h *Host) Report(r state.HostReport) {
	c := h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.report != nil && r.Seq <= h.report.Seq {
		return
	}
	c.urgent = c.urgent || h.sent == nil || Durable(h.report, &r)
	h.report = &r
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
		if !failed || answered {
			c.cfg.Log.Debug("no stream to the controller; reports go to the store", "error", err)
		}
		failed = !answered
		wait := pause
		pause = min(2*pause, lastPause)
		if answered {
			c.mu.Lock()
			wait, pause = max(firstPause, c.spread), firstPause
			c.mu.Unlock()
		}
		if !sleep.For(ctx, wait/4+rand.N(wait)) {
			return
		}
	}
}

// hangUp closes the connection, if there is one.
func (c *Client) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is under way any more
		c.conn = nil
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

// connect serves one stream to its end. It reports whether the controller took part.
func (c *Client) connect(ctx context.Context) (answered bool, err error) {
	// The connection stays for the next stream after a controller was not available, and follows
	// who leads then: where many connect at a time, one that was made is not to be made again
	// because the controller was late.
	if c.conn == nil {
		if c.conn, err = c.cfg.Dial(ctx); err != nil {
			c.conn = nil
			return false, fmt.Errorf("connect to the controller: %w", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := clusterapi.NewHostsClient(c.conn).Connect(ctx)
	if err != nil {
		return false, fmt.Errorf("begin a stream: %w", err)
	}
	c.begin()
	over := make(chan struct{})
	go func() {
		defer close(over)
		cancel(c.receive(stream))
	}()
	err = c.sendAll(ctx, stream)
	cancel(err)
	<-over // what it calls, it calls no more
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered, err
}

// begin makes all hosts begin with a hello.
func (c *Client) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone, c.answered, c.urgent = nil, false, true
	for n, h := range c.hosts {
		h.sent, h.seq, h.received, h.awaiting, h.rejected = nil, 0, 0, time.Time{}, false
		if h.report != nil {
			c.dirty[n] = h
		}
	}
	c.signal()
}
