package actorrpc

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// Config configures a client. Its zero value calls servers of this machine in
// plain text.
type Config struct {
	// Options are for all calls that have no others.
	Options RPCOptions
	// Identity is the namespace's; servers must show the same. nil: plain text.
	Identity  *Identity
	Namespace string // "": none in particular
	// MaxMessageBytes is the limit on the payload of a call or a reply; 0: 1 GiB. By gRPC it is 64 MiB at most.
	MaxMessageBytes uint64
	// TransferMemory is how many bytes of results that come in parts there may be at once: others wait; 0: 2 GiB.
	TransferMemory uint64
	Keepalive      Keepalive
	// ResolveTimeout is how long an actor is looked for, and its server tried to be
	// reached, for one call; 0: 60 s. The call's own deadline may be earlier.
	ResolveTimeout time.Duration
	Log            *slog.Logger // nil: none
}

// Keepalive configures when a connection is given up.
type Keepalive struct {
	Every    time.Duration // after so much silence a server is pinged; 0: 10 s
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
	c.TransferMemory = cmp.Or(c.TransferMemory, wire.DefaultMemory)
	c.Keepalive.Every = cmp.Or(c.Keepalive.Every, defaultEvery)
	c.Keepalive.Patience = cmp.Or(c.Keepalive.Patience, defaultPatience)
	c.Keepalive.Idle = cmp.Or(c.Keepalive.Idle, defaultIdle)
	c.ResolveTimeout = cmp.Or(c.ResolveTimeout, defaultResolve)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
