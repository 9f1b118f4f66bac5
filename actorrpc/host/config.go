package host

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/wire"
	"github.com/fray-ml/fray/clusterapi"
)

// Config configures a server. Its zero value serves plain text on a free port of
// the loopback address and registers nowhere; [FromEnvironment] makes a task's.
type Config struct {
	// Host is the address to listen at. "": the loopback address without an
	// identity, all addresses with one. Without, other than loopback addresses are rejected
	// unless AllowInsecure, and all addresses mean loopback.
	Host string
	Port int // 0: a free one
	// Advertise is the host by which others reach this one; "": where it listens.
	Advertise string
	Namespace string // "": none in particular
	// Identity is the namespace's: peers must show the same. nil: plain text.
	Identity      *actorrpc.Identity
	AllowInsecure bool

	// Metadata is the cluster's register of names; nil: names are known here only.
	Metadata clusterapi.MetadataClient
	JobID    string // "": that of the token which Metadata sends
	Task     int    // index

	// Client is given to methods, by FromContext; nil: none.
	Client *actorrpc.Client

	// MaxMessageBytes is the limit on the payload of a call or a reply; 0: 1 GiB. By gRPC it is 64 MiB at most.
	MaxMessageBytes uint64
	// TransferMemory is how many bytes of arguments that come in parts, and of results that are sent so, there
	// may be at once, each: others wait; 0: 2 GiB.
	TransferMemory uint64
	// MaxPending is how many calls of one connection may be unanswered; 0: 10,000.
	MaxPending int
	// Keepalive is after which silence of a peer it is pinged; 0: 10 s.
	// After Patience more it is taken for dead; 0: 20 s.
	Keepalive, Patience time.Duration
	// Grace is how long Serve lets calls that run finish at the end; 0: without limit.
	Grace time.Duration
	Log   *slog.Logger // nil: none
}

const (
	defaultMaxPending = 10_000
	defaultKeepalive  = 10 * time.Second
	defaultPatience   = 20 * time.Second
	// maxMailbox is how many calls of one actor's group may wait, from all callers.
	maxMailbox = 100_000
	// maxWaitingBytes is how large the arguments of all calls that wait may be.
	maxWaitingBytes = 1 << 30
)

func (c Config) complete() (Config, error) {
	if c.Port < 0 || c.Port > 65535 {
		return c, fmt.Errorf("port %d: want 0 to 65535", c.Port)
	}
	if c.MaxPending < 0 || c.Keepalive < 0 || c.Patience < 0 || c.Task < 0 {
		return c, errors.New("MaxPending, Keepalive, Patience and Task cannot be negative")
	}
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, wire.DefaultMaxMessage)
	c.TransferMemory = cmp.Or(c.TransferMemory, wire.DefaultMemory)
	c.MaxPending = cmp.Or(c.MaxPending, defaultMaxPending)
	c.Keepalive = cmp.Or(c.Keepalive, defaultKeepalive)
	c.Patience = cmp.Or(c.Patience, defaultPatience)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// bind is the address to listen at.
func (c Config) bind() (string, error) {
	host := c.Host
	ip := net.ParseIP(host)
	everywhere := host == "" || ip != nil && ip.IsUnspecified()
	switch {
	case c.Identity != nil || c.AllowInsecure && host != "":
	case everywhere:
		host = "127.0.0.1"
	case host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return "", fmt.Errorf("listen at %s: without an identity only this machine is served; give one, listen at 127.0.0.1, or set AllowInsecure", host)
	}
	return net.JoinHostPort(host, strconv.Itoa(c.Port)), nil
}

// advertised is by what others reach a listener.
func (c Config) advertised(bound *net.TCPAddr) string {
	host := c.Advertise
	if host == "" {
		host = bound.IP.String()
		if bound.IP.IsUnspecified() {
			host = "127.0.0.1"
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(bound.Port))
}

// Options configure how an actor is served.
type Options struct {
	// MaxConcurrency is how many of its methods run at once; 0: 1.
	MaxConcurrency int
	// Groups are further limits, by name, for the methods that name one: these run
	// beside the others.
	Groups  map[string]int
	Methods map[string]MethodOptions // by the Go name or the one on the wire
	// Metadata is registered with the name.
	Metadata map[string]string
	// Unique rejects a name that another actor of the namespace has.
	Unique bool
}

// MethodOptions configure how a method is served.
type MethodOptions struct {
	Group string // of Options.Groups; "": the actor's own
	// Idempotent declares to clients that running it twice does no harm.
	Idempotent bool
	// Retries declares how often clients send a call again that may have run, unless they have other options.
	Retries int
	// RetryErrors declares after which errors of the method they do so, too, by their types, as in
	// rpcerror.Error: "*fs.PathError" stands for what wraps one, and "*" for all.
	RetryErrors []string
	// Params are the names of its parameters, for callers that give them by name.
	Params []string
	Doc    string // what it does, for people
}

func (o Options) check() error {
	if o.MaxConcurrency < 0 {
		return fmt.Errorf("MaxConcurrency is %d: want at least 1", o.MaxConcurrency)
	}
	for name, n := range o.Groups {
		if !utf8.ValidString(name) {
			return fmt.Errorf("concurrency group %q is no UTF-8", name)
		}
		if n < 1 || name == "" {
			return fmt.Errorf("concurrency group %q has room for %d: want a name and at least 1", name, n)
		}
	}
	for name, m := range o.Methods {
		if _, ok := o.Groups[m.Group]; m.Group != "" && !ok {
			return fmt.Errorf("method %q is in concurrency group %q, which Groups does not have", name, m.Group)
		}
		if m.Retries < 0 {
			return fmt.Errorf("method %q is retried %d times: want 0 or more", name, m.Retries)
		}
		for _, text := range slices.Concat([]string{m.Doc}, m.Params, m.RetryErrors) {
			if !utf8.ValidString(text) {
				return fmt.Errorf("%q, which is said of method %q, is no UTF-8", text, name)
			}
		}
	}
	return nil
}
