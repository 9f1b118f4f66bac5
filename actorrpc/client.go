package actorrpc

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
	"weak"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// Config says how a client calls. Its zero value calls servers of this machine in
// plain text.
type Config struct {
	// Options are for all calls that do not say otherwise.
	Options RPCOptions
	// Identity is the namespace's; servers must show the same. nil: plain text.
	Identity  *Identity
	Namespace string // "": none in particular
	// MaxMessageBytes is the limit on a call or a reply; 0: 64 MiB.
	MaxMessageBytes uint64
	Keepalive       Keepalive
	// ResolveTimeout is how long an actor is looked for, and its server tried to be
	// reached, for one call; 0: 60 s. The call's own deadline may be earlier.
	ResolveTimeout time.Duration
	Log            *slog.Logger // nil: none
}

// Keepalive says when a connection is given up.
type Keepalive struct {
	Every    time.Duration // after so much silence a server is asked for a word; 0: 10 s
	Patience time.Duration // after so much more it is taken for dead; 0: 20 s
	Idle     time.Duration // a connection without calls is closed after about so long; 0: 5 min
}

const (
	defaultEvery    = 10 * time.Second
	defaultPatience = 20 * time.Second
	defaultIdle     = 5 * time.Minute
	defaultResolve  = 60 * time.Second
)

func (c Config) complete() Config {
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, wire.DefaultMaxMessage)
	c.Keepalive.Every = cmp.Or(c.Keepalive.Every, defaultEvery)
	c.Keepalive.Patience = cmp.Or(c.Keepalive.Patience, defaultPatience)
	c.Keepalive.Idle = cmp.Or(c.Keepalive.Idle, defaultIdle)
	c.ResolveTimeout = cmp.Or(c.ResolveTimeout, defaultResolve)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Client calls actors. It has one connection to each server, which all of its
// handles share; so a process needs one client, and its calls of an actor begin in
// the order in which it makes them. When an actor has moved, calls wait for those
// which its former place still has, unless these go on for longer than a silent server
// is listened to. It may be used by many goroutines at once.
type Client struct {
	config   Config
	resolver Resolver
	dial     dialer
	unwatch  func()
	closers  []func()

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	actors   map[actorKey]weak.Pointer[actor] // gone with the last handle and call
	servers  map[string]*server
	generals map[string]*general
}

// NewClient makes a client that finds actors by a resolver. Close ends it.
func NewClient(resolver Resolver, config Config) *Client {
	c := &Client{
		config: config.complete(), resolver: resolver, dial: dialTCP,
		actors: map[actorKey]weak.Pointer[actor]{}, servers: map[string]*server{}, generals: map[string]*general{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.unwatch = resolver.Watch(c.moved)
	return c
}

// Close ends all connections. Calls without an answer fail.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	generals := c.generals
	c.generals = nil
	c.mu.Unlock()
	c.unwatch()
	c.cancel()
	for _, g := range generals {
		g.close()
	}
	c.running.Wait()
	for _, f := range c.closers {
		f()
	}
	return nil
}

// run has a goroutine do something that ends with the client, unless that is closed.
func (c *Client) run(f func(ctx context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Go(func() { f(c.ctx) })
	return true
}

func (c *Client) log() *slog.Logger { return c.config.Log }
